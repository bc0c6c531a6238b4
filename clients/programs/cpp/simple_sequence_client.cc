// Sends two sequences of numbers to a model that adds them up: `simple_sequence`, or with -d
// `simple_dyna_sequence`.
#include <condition_variable>
#include <mutex>

#include "simple.h"

namespace {

typedef std::unique_ptr<nic::InferContext> Context;
typedef std::shared_ptr<nic::InferContext::Request> Request;

const std::vector<int32_t> kValues = {11, 7, 5, 3, 2, 0, 1};

// Value of a sequence at a step; step 0 is its start.
struct Sequence {
  int32_t first, sign;
  int32_t At(size_t step) const { return step == 0 ? first : sign * kValues[step - 1]; }
};

// Sets options and input for one step. Correlation id 0 is that of the context.
void Prepare(const Context& context, const int32_t& value, size_t step, ni::CorrelationID id) {
  std::unique_ptr<nic::InferContext::Options> options;
  Check(nic::InferContext::Options::Create(&options), "unable to create inference options");
  options->SetFlags(0);
  options->SetFlag(ni::InferRequestHeader::FLAG_SEQUENCE_START, step == 0);
  options->SetFlag(ni::InferRequestHeader::FLAG_SEQUENCE_END, step == kValues.size());
  options->SetBatchSize(1);
  options->SetCorrelationId(id);
  for (const auto& output : context->Outputs()) options->AddRawResult(output);
  Check(context->SetRunOptions(*options), "unable to set inference options");
  Check(Input(context, "INPUT")->SetRaw(reinterpret_cast<const uint8_t*>(&value), sizeof value), "unable to set data for INPUT");
}

int32_t Output(Results& results) {
  if (results.size() != 1) Fail("expected 1 result, got " + std::to_string(results.size()));
  int32_t value = 0;
  Check(results["OUTPUT"]->GetRawAtCursor(0, &value), "unable to get OUTPUT result");
  return value;
}

// One request after the other.
std::vector<int32_t> Run(const Context& context, const Sequence& sequence) {
  std::vector<int32_t> sums;
  for (size_t step = 0; step <= kValues.size(); ++step) {
    const int32_t value = sequence.At(step);
    Prepare(context, value, step, 0);
    Results results;
    Check(context->Run(&results), "unable to run model");
    sums.push_back(Output(results));
  }
  return sums;
}

// All requests at once, over one stream: it keeps their order.
std::vector<std::vector<int32_t>> RunInterleaved(
    const Context& context, const std::vector<ni::CorrelationID>& ids, const std::vector<Sequence>& sequences) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::vector<Request>> completed(sequences.size());
  // The values stay where they are until the requests have completed.
  std::vector<std::vector<int32_t>> values(sequences.size(), std::vector<int32_t>(kValues.size() + 1));
  for (size_t step = 0; step <= kValues.size(); ++step) {
    for (size_t i = 0; i < sequences.size(); ++i) {
      values[i][step] = sequences[i].At(step);
      Prepare(context, values[i][step], step, ids[i]);
      const auto callback = [&, i](nic::InferContext*, const Request& request) {
        const std::lock_guard<std::mutex> lock(mutex);
        completed[i].push_back(request);
        changed.notify_all();
      };
      Check(context->AsyncRun(callback), "unable to run model");
    }
  }
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return completed[0].size() + completed[1].size() == 2 * (kValues.size() + 1); });

  std::vector<std::vector<int32_t>> sums(sequences.size());
  for (size_t i = 0; i < sequences.size(); ++i) {
    for (const Request& request : completed[i]) {
      Results results;
      Check(context->GetAsyncRunResults(request, &results), "unable to get results");
      sums[i].push_back(Output(results));
    }
  }
  return sums;
}

void Usage(const char* program, std::ostream& out, int code) {
  out << "Usage: " << program << " [options]\n"
      << "\t-v\t\tprint requests and responses\n"
      << "\t-a\t\tsend all requests at once, over one stream\n"
      << "\t-r\t\trun the non-streaming context first\n"
      << "\t-d\t\tuse the dynamic sequence model\n"
      << "\t-u <URL>\tof the server's gRPC port, default localhost:8001\n"
      << "\t-o <offset>\tthe correlation ids are 1 + 2 * offset and 2 + 2 * offset, default 0\n";
  std::exit(code);
}

}  // namespace

int main(int argc, char** argv) {
  bool verbose = false, at_once = false, reverse = false, dynamic = false;
  std::string url = "localhost:8001";
  long offset = 0;
  for (int opt; (opt = NextFlag(argc, argv, "hvardu:o:")) != -1;) {
    switch (opt) {
      case 'h': Usage(argv[0], std::cout, 0); break;
      case 'v': verbose = true; break;
      case 'a': at_once = true; break;
      case 'r': reverse = true; break;
      case 'd': dynamic = true; break;
      case 'u': url = optarg; break;
      case 'o': offset = Number(optarg, "-o", 0); break;
      default: Usage(argv[0], std::cerr, 1);
    }
  }
  NoMoreArguments(argc, argv, 0);
  Asked() = url;
  const std::string model = dynamic ? "simple_dyna_sequence" : "simple_sequence";
  const ni::CorrelationID first = 1 + 2 * static_cast<ni::CorrelationID>(offset);
  std::vector<ni::CorrelationID> ids = {first, first + 1};
  std::cout << "sequence 0 correlation ID " << ids[0] << " : sequence 1 correlation ID " << ids[1] << std::endl;

  Context streams, single;
  Check(nic::InferGrpcStreamContext::Create(&streams, ids[0], url, model, -1, verbose), "unable to create inference contexts");
  if (!at_once) {
    Check(nic::InferGrpcContext::Create(&single, ids[1], url, model, -1, verbose), "unable to create inference contexts");
  }

  const std::vector<Sequence> sequences = {{0, 1}, {100, -1}};
  std::vector<std::vector<int32_t>> sums;
  if (at_once) {
    sums = RunInterleaved(streams, ids, sequences);
    std::cout << "streaming : streaming" << std::endl;
  } else {
    if (reverse) {
      std::swap(streams, single);
      std::swap(ids[0], ids[1]);
    }
    sums = {Run(streams, sequences[0]), Run(single, sequences[1])};
    std::cout << (reverse ? "non-streaming : streaming" : "streaming : non-streaming") << std::endl;
  }

  std::vector<int32_t> expected = {0, 100};
  for (size_t i = 0; i < sums[0].size(); ++i) {
    std::cout << "[" << i << "] " << sums[0][i] << " : " << sums[1][i] << std::endl;
    if (sums[0][i] != expected[0] || sums[1][i] != expected[1]) {
      std::cout << "[ expected ] " << expected[0] << " : " << expected[1] << std::endl;
      return 1;
    }
    if (i == kValues.size()) break;
    expected[0] += kValues[i];
    expected[1] -= kValues[i];
    // The dynamic model adds the correlation id to the last sum.
    if (dynamic && i + 1 == kValues.size()) {
      for (size_t s = 0; s < 2; ++s) expected[s] += static_cast<int32_t>(ids[s]);
    }
  }
  return 0;
}
