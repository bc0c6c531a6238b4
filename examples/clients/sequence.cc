// A custom backend for simple_sequence: OUTPUT is the sum of INPUT over the sequence so far, INT32
// [1].
//
// The batcher assigns a sequence to a slot, which is the index of its payload; START begins a new
// sum, READY = 0 marks a slot without a request. Compiled with -DBY_CORRELATION_ID, for
// simple_dyna_sequence: one sum for each CORRID, which is added to the last sum of its sequence
// (END).
#include <cstring>
#include <map>

#include "custom_backend.h"

namespace {

enum Error { NO_INPUT = 1, NO_OUTPUT };

// Reads a tensor of one number.
template <typename Number>
bool Read(const Request& request, const char* name, Number* value) {
  std::string bytes;
  if (!request.Read(name, sizeof *value, &bytes) || bytes.size() != sizeof *value) return false;
  std::memcpy(value, bytes.data(), sizeof *value);
  return true;
}

class Sequences {
 public:
  int Run(uint32_t slot, const Request& request) {
    uint64_t id = slot;
    int32_t start = 0, ready = 0, end = 0, input = 0;
    if (!Read(request, "READY", &ready)) return NO_INPUT;
    if (ready == 0) return 0;
    if (!Read(request, "START", &start) || !Read(request, "INPUT", &input)) return NO_INPUT;
#ifdef BY_CORRELATION_ID
    if (!Read(request, "CORRID", &id) || !Read(request, "END", &end)) return NO_INPUT;
#endif

    int32_t sum = start != 0 ? input : sums_[id] + input;
    if (end != 0) {
      sum += static_cast<int32_t>(id);
      sums_.erase(id);
    } else {
      sums_[id] = sum;
    }
    void* output = nullptr;
    if (!request.Output({1, 1}, sizeof sum, &output)) return NO_OUTPUT;
    if (output != nullptr) std::memcpy(output, &sum, sizeof sum);
    return 0;
  }

  const char* Explain(int error) {
    return error == NO_OUTPUT ? "no memory for OUTPUT" : "an input or control tensor cannot be read";
  }

 private:
  // By slot or correlation id.
  std::map<uint64_t, int32_t> sums_;
};

}  // namespace

CUSTOM_BACKEND(Sequences)
