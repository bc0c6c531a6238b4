// A POSIX shared-memory region that is registered with a server. The process id in its key keeps
// programs that run at once apart.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "simple.h"

class SharedRegion {
 public:
  SharedRegion(nic::SharedMemoryControlContext* control, const std::string& name, const std::string& key, size_t size)
      : control_(control), name_(name), key_(key + "_" + std::to_string(getpid())), size_(size) {
    const int file = shm_open(key_.c_str(), O_RDWR | O_CREAT, S_IRUSR | S_IWUSR);
    if (file == -1) Fail("unable to get shared memory descriptor for shared-memory key '" + key_ + "': " + std::strerror(errno));
    if (ftruncate(file, static_cast<off_t>(size)) == -1) {
      Fail("unable to initialize shared-memory key '" + key_ + "' to requested size " + std::to_string(size) + " bytes");
    }
    address_ = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (address_ == MAP_FAILED) Fail("unable to map shared-memory key '" + key_ + "': " + std::strerror(errno));
    const nic::Error error = control->RegisterSharedMemory(name, key_, 0, size);
    // The server has opened the object, so its name is not needed any more, and no failure can
    // leave it behind.
    shm_unlink(key_.c_str());
    Check(error, "unable to register shared memory region " + name);
  }

  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  // The server keeps the region until it is unregistered.
  ~SharedRegion() {
    munmap(address_, size_);
    Check(control_->UnregisterSharedMemory(name_), "unable to unregister shared memory region " + name_);
  }

  uint8_t* Bytes() { return static_cast<uint8_t*>(address_); }

 private:
  nic::SharedMemoryControlContext* control_;
  std::string name_, key_;
  size_t size_;
  void* address_;
};

inline std::unique_ptr<nic::SharedMemoryControlContext> ConnectSharedMemory(const Flags& flags) {
  std::unique_ptr<nic::SharedMemoryControlContext> control;
  Check(flags.grpc ? nic::SharedMemoryControlGrpcContext::Create(&control, flags.url, flags.verbose)
                   : nic::SharedMemoryControlHttpContext::Create(&control, flags.url, flags.headers, flags.verbose),
        "unable to create shared memory control context");
  return control;
}

// Runs a model whose inputs and outputs lie one behind the other in the regions `input_data` and
// `output_data`.
inline void RunInRegions(
    const std::unique_ptr<nic::InferContext>& context, const std::vector<size_t>& input_sizes, size_t output_size) {
  std::unique_ptr<nic::InferContext::Options> options;
  Check(nic::InferContext::Options::Create(&options), "unable to create inference options");
  options->SetBatchSize(1);
  for (size_t i = 0; i < 2; ++i) {
    std::shared_ptr<nic::InferContext::Output> output;
    const std::string name = "OUTPUT" + std::to_string(i);
    Check(context->GetOutput(name, &output), "unable to get " + name);
    Check(options->AddSharedMemoryResult(output, "output_data", i * output_size, output_size), "unable to request " + name);
  }
  Check(context->SetRunOptions(*options), "unable to set inference options");
  size_t offset = 0;
  for (size_t i = 0; i < 2; ++i) {
    const std::string name = "INPUT" + std::to_string(i);
    Check(Input(context, name)->SetSharedMemory("input_data", offset, input_sizes[i]), "unable to set shared memory for " + name);
    offset += input_sizes[i];
  }
  Results results;
  Check(context->Run(&results), "unable to run model");
  if (results.size() != 2) Fail("expected 2 results, got " + std::to_string(results.size()));
}

inline void ShowRegions(const std::unique_ptr<nic::SharedMemoryControlContext>& control) {
  ni::SharedMemoryStatus status;
  Check(control->GetSharedMemoryStatus(&status), "unable to get shared memory status");
  std::cout << "Shared Memory Status:\n" << status.DebugString() << std::endl;
}
