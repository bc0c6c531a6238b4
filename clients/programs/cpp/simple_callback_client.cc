// Sends requests to the model `simple` without waiting: two whose callbacks take the results, one
// whose result is taken later.
#include <condition_variable>
#include <mutex>

#include "simple.h"

typedef std::shared_ptr<nic::InferContext::Request> Request;

int main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv, false);
  std::unique_ptr<nic::InferContext> context = Connect(flags, "simple");
  RequestOutputs(context);
  const std::vector<int32_t> input0 = ZeroToFifteen(), input1(16, 1);
  SetInputs(context, input0, input1);
  const auto check = [&](nic::InferContext* context, const Request& request) {
    Results results;
    Check(context->GetAsyncRunResults(request, &results), "unable to get results");
    CheckResults(results, input0, input1);
  };

  // Callbacks run on a thread of the library.
  std::mutex mutex;
  std::condition_variable changed;
  size_t done = 0;
  const size_t count = 2;
  for (size_t i = 0; i < count; ++i) {
    const auto callback = [&, i](nic::InferContext* context, const Request& request) {
      const std::lock_guard<std::mutex> lock(mutex);
      std::cout << "Callback no." << i << " is called" << std::endl;
      check(context, request);
      ++done;
      changed.notify_all();
    };
    Check(context->AsyncRun(callback), "unable to run model");
  }
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return done == count; });
  std::cout << "All done" << std::endl;
  lock.unlock();

  Request deferred;
  const auto callback = [&](nic::InferContext*, const Request& request) {
    const std::lock_guard<std::mutex> lock(mutex);
    deferred = request;
    changed.notify_all();
  };
  Check(context->AsyncRun(callback), "unable to run model");
  lock.lock();
  changed.wait(lock, [&] { return deferred != nullptr; });
  std::cout << "Getting results from deferred response" << std::endl;
  check(context.get(), deferred);
  return 0;
}
