// Adds and subtracts sixteen numbers with the model `simple`, with inputs and outputs in shared
// memory.
#include "shared_region.h"

int main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv, true);
  ShowServer(flags, "simple");
  std::unique_ptr<nic::InferContext> context = Connect(flags, "simple");
  std::unique_ptr<nic::SharedMemoryControlContext> control = ConnectSharedMemory(flags);

  const std::vector<int32_t> input0 = ZeroToFifteen(), input1(16, 1);
  const size_t size = input0.size() * sizeof(int32_t);
  SharedRegion outputs(control.get(), "output_data", "/output_simple", 2 * size);
  SharedRegion inputs(control.get(), "input_data", "/input_simple", 2 * size);
  std::memcpy(inputs.Bytes(), input0.data(), size);
  std::memcpy(inputs.Bytes() + size, input1.data(), size);

  RunInRegions(context, {size, size}, size);
  const int32_t* sums = reinterpret_cast<const int32_t*>(outputs.Bytes());
  const int32_t* differences = sums + input0.size();
  for (size_t i = 0; i < input0.size(); ++i) CheckPair(input0[i], input1[i], sums[i], differences[i]);
  ShowRegions(control);
  return 0;
}
