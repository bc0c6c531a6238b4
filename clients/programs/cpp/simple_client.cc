// Adds and subtracts sixteen numbers with the model `simple`, after a look at health and status of
// the server.
#include "simple.h"

int main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv, true);
  ShowServer(flags, "simple");

  std::unique_ptr<nic::InferContext> context = Connect(flags, "simple");
  RequestOutputs(context);
  const std::vector<int32_t> input0 = ZeroToFifteen(), input1(16, 1);
  SetInputs(context, input0, input1);

  Results results;
  Check(context->Run(&results), "unable to run model");
  CheckResults(results, input0, input1);
  return 0;
}
