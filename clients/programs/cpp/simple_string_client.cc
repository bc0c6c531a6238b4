// Adds and subtracts sixteen numbers, sent as decimal strings, with the model `simple_string`.
#include "simple.h"

int main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv, false);
  std::unique_ptr<nic::InferContext> context = Connect(flags, "simple_string");
  RequestOutputs(context);

  const std::vector<int32_t> numbers = ZeroToFifteen();
  std::vector<std::string> input0;
  for (const int32_t number : numbers) input0.push_back(std::to_string(number));
  const std::vector<std::string> input1(input0.size(), "1");
  Check(Input(context, "INPUT0")->SetFromString(input0), "unable to set data for INPUT0");
  Check(Input(context, "INPUT1")->SetFromString(input1), "unable to set data for INPUT1");

  Results results;
  Check(context->Run(&results), "unable to run model");
  if (results.size() != 2) Fail("expected 2 results, got " + std::to_string(results.size()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    std::string sum, difference;
    const std::string at = " result at idx " + std::to_string(i);
    Check(results["OUTPUT0"]->GetRawAtCursor(0, &sum), "unable to get OUTPUT0" + at);
    Check(results["OUTPUT1"]->GetRawAtCursor(0, &difference), "unable to get OUTPUT1" + at);
    CheckPair(numbers[i], 1, std::atoi(sum.c_str()), std::atoi(difference.c_str()));
  }
  return 0;
}
