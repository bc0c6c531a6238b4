// Adds and subtracts decimal strings with the model `simple_string`, with inputs and outputs in
// shared memory.
#include "shared_region.h"

namespace {

// Strings as they are sent: each behind its length in four bytes.
std::string Serialize(const std::vector<std::string>& strings) {
  std::string bytes;
  for (const std::string& text : strings) {
    const uint32_t size = static_cast<uint32_t>(text.size());
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes.append(text);
  }
  return bytes;
}

// The next number of serialized strings that end at `end`.
int32_t Next(const uint8_t** at, const uint8_t* end) {
  uint32_t size = 0;
  if (static_cast<size_t>(end - *at) < sizeof size) Fail("an output ends too early");
  std::memcpy(&size, *at, sizeof size);
  *at += sizeof size;
  if (static_cast<size_t>(end - *at) < size) Fail("an output ends too early");
  const std::string text(reinterpret_cast<const char*>(*at), size);
  *at += size;
  return std::atoi(text.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv, true);
  ShowServer(flags, "simple_string");
  std::unique_ptr<nic::InferContext> context = Connect(flags, "simple_string");
  std::unique_ptr<nic::SharedMemoryControlContext> control = ConnectSharedMemory(flags);

  // 1 to 16, and ones.
  std::vector<std::string> numbers;
  for (int i = 1; i <= 16; ++i) numbers.push_back(std::to_string(i));
  const std::string input0 = Serialize(numbers), input1 = Serialize(std::vector<std::string>(16, "1"));
  // A sum is at most one digit longer.
  const size_t output_size = input0.size() + numbers.size();
  SharedRegion outputs(control.get(), "output_data", "/output_simple_string", 2 * output_size);
  SharedRegion inputs(control.get(), "input_data", "/input_simple_string", input0.size() + input1.size());
  std::memcpy(inputs.Bytes(), input0.data(), input0.size());
  std::memcpy(inputs.Bytes() + input0.size(), input1.data(), input1.size());

  RunInRegions(context, {input0.size(), input1.size()}, output_size);
  const uint8_t* sum = outputs.Bytes();
  const uint8_t* difference = sum + output_size;
  const uint8_t* const end = difference + output_size;
  for (int32_t i = 1; i <= 16; ++i) {
    const int32_t added = Next(&sum, outputs.Bytes() + output_size), subtracted = Next(&difference, end);
    CheckPair(i, 1, added, subtracted);
  }
  ShowRegions(control);
  return 0;
}
