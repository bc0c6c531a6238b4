// Contexts of the v1 C++ client that ask and control the server: health, status, repository,
// models, shared memory, profiler. Calls on one context are made by one thread at a time. C++11.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef TRTSERVER_CLIENT_V1_SERVER_H
#define TRTSERVER_CLIENT_V1_SERVER_H

#include <memory>
#include <string>

#include "../server_status.pb.h"
#include "connection.h"

// CUDA's type, with its layout, for programs that are compiled without CUDA.
#ifdef TRTIS_ENABLE_GPU
#include <cuda_runtime_api.h>
#elif !defined(__DRIVER_TYPES_H__)
struct cudaIpcMemHandle_t {
  char reserved[64];
};
#endif

namespace nvidia {
namespace inferenceserver {
namespace client {

class ServerHealthContext {
 public:
  virtual ~ServerHealthContext() {}
  virtual Error GetReady(bool* ready) = 0;
  virtual Error GetLive(bool* live) = 0;
};

class ServerStatusContext {
 public:
  virtual ~ServerStatusContext() {}
  // Status of the server and all models, or of the model that the context was created with.
  virtual Error GetServerStatus(ServerStatus* status) = 0;
};

class ModelRepositoryContext {
 public:
  virtual ~ModelRepositoryContext() {}
  virtual Error GetModelRepositoryIndex(ModelRepositoryIndex* index) = 0;
};

class ModelControlContext {
 public:
  virtual ~ModelControlContext() {}
  // A loaded model is loaded anew.
  virtual Error Load(const std::string& model_name) = 0;
  // A model that is not loaded is not an error.
  virtual Error Unload(const std::string& model_name) = 0;
};

class SharedMemoryControlContext {
 public:
  virtual ~SharedMemoryControlContext() {}
  virtual Error RegisterSharedMemory(const std::string& name, const std::string& shm_key, size_t offset,
                                     size_t byte_size) = 0;
  virtual Error RegisterCudaSharedMemory(const std::string& name, const cudaIpcMemHandle_t& cuda_shm_handle,
                                         size_t byte_size, int device_id) = 0;
  virtual Error UnregisterSharedMemory(const std::string& name) = 0;
  virtual Error UnregisterAllSharedMemory() = 0;
  virtual Error GetSharedMemoryStatus(SharedMemoryStatus* status) = 0;
};

// The server's CUDA profiler.
class ProfileContext {
 public:
  virtual ~ProfileContext() {}
  virtual Error StartProfile() = 0;
  virtual Error StopProfile() = 0;
};

namespace detail {

class HealthImpl : public ServerHealthContext {
 public:
  Error GetReady(bool* ready) override { return connection.Outcome(trtc_v1_ready(connection.get(), 0, ready)); }
  Error GetLive(bool* live) override { return connection.Outcome(trtc_v1_live(connection.get(), 0, live)); }
  Connection connection;
};

class StatusImpl : public ServerStatusContext {
 public:
  explicit StatusImpl(const std::string& model = std::string()) : model_(model) {}
  Error GetServerStatus(ServerStatus* status) override {
    trtc_buffer buffer = {nullptr, 0, nullptr};
    const char* model = model_.empty() ? nullptr : model_.c_str();
    trtc_error* error = trtc_v1_status(connection.get(), model, 0, &buffer);
    return connection.Parse(error, &buffer, status, "server status");
  }
  Connection connection;

 private:
  const std::string model_;
};

class RepositoryImpl : public ModelRepositoryContext {
 public:
  Error GetModelRepositoryIndex(ModelRepositoryIndex* index) override {
    trtc_buffer buffer = {nullptr, 0, nullptr};
    trtc_error* error = trtc_v1_repository_index(connection.get(), 0, &buffer);
    return connection.Parse(error, &buffer, index, "model repository index");
  }
  Connection connection;
};

class ControlImpl : public ModelControlContext {
 public:
  Error Load(const std::string& model) override {
    return connection.Outcome(trtc_v1_load_model(connection.get(), model.c_str(), 0));
  }
  Error Unload(const std::string& model) override {
    return connection.Outcome(trtc_v1_unload_model(connection.get(), model.c_str(), 0));
  }
  Connection connection;
};

class MemoryImpl : public SharedMemoryControlContext {
 public:
  Error RegisterSharedMemory(const std::string& name, const std::string& key, size_t offset, size_t size) override {
    return connection.Outcome(
        trtc_v1_register_system_memory(connection.get(), name.c_str(), key.c_str(), offset, size, 0));
  }
  Error RegisterCudaSharedMemory(const std::string& name, const cudaIpcMemHandle_t& handle, size_t size,
                                 int device) override {
    return connection.Outcome(
        trtc_v1_register_cuda_memory(connection.get(), name.c_str(), &handle, sizeof(handle), size, device, 0));
  }
  Error UnregisterSharedMemory(const std::string& name) override {
    return connection.Outcome(trtc_v1_unregister_memory(connection.get(), name.c_str(), 0));
  }
  Error UnregisterAllSharedMemory() override {
    return connection.Outcome(trtc_v1_unregister_memory(connection.get(), nullptr, 0));
  }
  Error GetSharedMemoryStatus(SharedMemoryStatus* status) override {
    trtc_buffer buffer = {nullptr, 0, nullptr};
    trtc_error* error = trtc_v1_memory_status(connection.get(), 0, &buffer);
    return connection.Parse(error, &buffer, status, "shared memory status");
  }
  Connection connection;
};

class ProfileImpl : public ProfileContext {
 public:
  Error StartProfile() override { return connection.Outcome(trtc_v1_profile(connection.get(), true, 0)); }
  Error StopProfile() override { return connection.Outcome(trtc_v1_profile(connection.get(), false, 0)); }
  Connection connection;
};

}  // namespace detail
}  // namespace client
}  // namespace inferenceserver
}  // namespace nvidia

#endif
