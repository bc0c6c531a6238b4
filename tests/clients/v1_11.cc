// A program in the style of TRTIS 1.11 that uses every class of its C++ client: v1_11 HTTP_URL
// GRPC_URL.
#include <condition_variable>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <mutex>
#include <sstream>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "src/clients/c++/library/request_grpc.h"
#include "src/clients/c++/library/request_http.h"

namespace ni = nvidia::inferenceserver;
namespace nic = nvidia::inferenceserver::client;

// In flat.cc: the headers are included twice in one program.
std::string flat_error();

#define OK(call)                                                              \
  do {                                                                        \
    const nic::Error err_ = (call);                                           \
    if (!err_.IsOk()) {                                                       \
      std::cerr << __FILE__ << ":" << __LINE__ << ": " << err_ << std::endl;  \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

#define FAILS(call, code, text) fails(call, ni::RequestStatusCode::code, text, __LINE__)

static void fails(const nic::Error& err, ni::RequestStatusCode code, const std::string& text, int line) {
  if (err.Code() != code || err.Message().find(text) == std::string::npos) {
    std::cerr << "line " << line << ": " << err << ", expected '" << text << "'" << std::endl;
    exit(1);
  }
}

static void Health(nic::ServerHealthContext* ctx) {
  bool live = false, ready = false;
  OK(ctx->GetLive(&live));
  OK(ctx->GetReady(&ready));
  CHECK(live && ready);
}

static void Status(nic::ServerStatusContext* ctx, size_t models) {
  ni::ServerStatus status;
  const nic::Error err = ctx->GetServerStatus(&status);
  CHECK(err.IsOk() && err.RequestId() > 0);
  CHECK(status.id() == "inference:0" && status.ready_state() == ni::ServerReadyState::SERVER_READY);
  CHECK(models == 0 ? status.model_status().size() > 1 : status.model_status().size() == models);
  const auto& itr = status.model_status().find("addsub_int32");
  CHECK(itr != status.model_status().end());
  const ni::ModelConfig& config = itr->second.config();
  CHECK(config.max_batch_size() == 8 && config.input_size() == 2 && config.input(1).name() == "INPUT1");
  CHECK(config.input(0).data_type() == ni::DataType::TYPE_INT32 && config.input(0).dims(0) == 16);
  CHECK(ni::DataType_Name(config.output(0).data_type()) == "TYPE_INT32" && config.has_version_policy());
  CHECK(config.input(0).format() == ni::ModelInput::FORMAT_NONE);
  CHECK(config.scheduling_choice_case() == ni::ModelConfig::SCHEDULING_CHOICE_NOT_SET);
  for (const auto& version : itr->second.version_status()) {
    CHECK(version.first == 1 && version.second.ready_state() == ni::ModelReadyState::MODEL_READY);
  }
  // The serialized form is read again, with the same text.
  ni::ServerStatus copy;
  CHECK(copy.ParseFromString(status.SerializeAsString()) && copy.DebugString() == status.DebugString());
  if (models == 0) std::cout << status.DebugString() << std::flush;
}

static void Repository(nic::ModelRepositoryContext* ctx) {
  ni::ModelRepositoryIndex index;
  OK(ctx->GetModelRepositoryIndex(&index));
  bool found = false;
  for (const auto& model : index.models()) found |= model.name() == "addsub_int32";
  CHECK(found && index.models_size() > 1);
}

static void Control(nic::ModelControlContext* ctx) {
  OK(ctx->Unload("echo"));
  OK(ctx->Load("echo"));
  FAILS(ctx->Load("absent"), INTERNAL, "failed to load 'absent'");
}

static std::vector<int32_t> Counted(int32_t from) {
  std::vector<int32_t> values;
  for (int32_t i = 0; i < 16; ++i) values.push_back(from + i);
  return values;
}

static const uint8_t* Bytes(const std::vector<int32_t>& values) {
  return reinterpret_cast<const uint8_t*>(values.data());
}

static void SetInputs(nic::InferContext* ctx, const std::vector<int32_t>& a, const std::vector<int32_t>& b,
                      size_t batch) {
  std::shared_ptr<nic::InferContext::Input> input0, input1;
  OK(ctx->GetInput("INPUT0", &input0));
  OK(ctx->GetInput("INPUT1", &input1));
  OK(input0->Reset());
  OK(input1->Reset());
  for (size_t i = 0; i < batch; ++i) {
    OK(input0->SetRaw(Bytes(a), 64));
    OK(input1->SetRaw(Bytes(b), 64));
  }
}

static void Infer(nic::InferContext* ctx) {
  CHECK(ctx->ModelName() == "addsub_int32" && ctx->ModelVersion() == -1 && ctx->MaxBatchSize() == 8);
  CHECK(ctx->CorrelationId() == 0 && ctx->Inputs().size() == 2 && ctx->Outputs().size() == 2);
  std::shared_ptr<nic::InferContext::Input> input;
  FAILS(ctx->GetInput("INPUT", &input), INVALID_ARG, "unknown input 'INPUT' for 'addsub_int32'");
  OK(ctx->GetInput("INPUT0", &input));
  CHECK(input->Name() == "INPUT0" && input->ByteSize() == 64 && input->DType() == ni::TYPE_INT32);
  CHECK(input->Format() == ni::ModelInput::FORMAT_NONE && input->Dims().size() == 1 && input->Dims()[0] == 16);
  CHECK(!input->IsShapeTensor() && input->Shape().empty() && input->TotalByteSize() == 0);
  CHECK(ctx->ByteSize(input->Dims(), input->DType()) == 64);
  std::shared_ptr<nic::InferContext::Output> output0, output1;
  FAILS(ctx->GetOutput("OUTPUT", &output0), INVALID_ARG, "unknown output 'OUTPUT' for 'addsub_int32'");
  OK(ctx->GetOutput("OUTPUT0", &output0));
  OK(ctx->GetOutput("OUTPUT1", &output1));
  CHECK(output1->Name() == "OUTPUT1" && output1->DType() == ni::TYPE_INT32 && output1->Dims()[0] == 16);
  CHECK(!output1->IsShapeTensor());

  std::unique_ptr<nic::InferContext::Options> options;
  OK(nic::InferContext::Options::Create(&options));
  options->SetBatchSize(9);
  FAILS(ctx->SetRunOptions(*options), INVALID_ARG,
        "run batch-size 9 exceeds maximum batch size 8 allowed for model 'addsub_int32'");
  options->SetBatchSize(2);
  options->SetFlags(0);
  options->SetFlag(ni::InferRequestHeader::FLAG_SEQUENCE_START, true);
  CHECK(options->Flag(ni::InferRequestHeader::FLAG_SEQUENCE_START) && options->Flags() == 1);
  options->SetFlag(ni::InferRequestHeader::FLAG_SEQUENCE_START, false);
  options->SetCorrelationId(0);
  options->SetPriority(0);
  options->SetTimeout(0);
  CHECK(options->BatchSize() == 2 && options->CorrelationId() == 0 && options->Priority() == 0 && options->Timeout() == 0);
  OK(options->AddRawResult(output0));
  OK(options->AddClassResult(output1, 3));
  OK(ctx->SetRunOptions(*options));

  const std::vector<int32_t> counted = Counted(0), ones(16, 1);
  FAILS(input->SetRaw(Bytes(counted), 60), INVALID_ARG, "invalid size 60 bytes for input 'INPUT0', expects 64 bytes");
  FAILS(input->SetFromString({"a"}), INVALID_ARG, "non-string tensor 'INPUT0' cannot be set from string data");
  nic::InferContext::ResultMap results;
  FAILS(ctx->Run(&results), INVALID_ARG, "expecting 2 invocations of SetRaw for input 'INPUT0', have 0");
  SetInputs(ctx, counted, ones, 2);
  CHECK(input->TotalByteSize() == 128);
  OK(ctx->Run(&results));
  CHECK(results.size() == 2);
  nic::InferContext::Result* raw = results["OUTPUT0"].get();
  CHECK(raw->ModelName() == "addsub_int32" && raw->ModelVersion() == 1 && raw->GetOutput() == output0);
  std::vector<int64_t> shape;
  OK(raw->GetRawShape(&shape));
  CHECK(shape == std::vector<int64_t>{16});
  const std::vector<uint8_t>* copied;
  OK(raw->GetRaw(1, &copied));
  const uint8_t* in_place;
  size_t size;
  OK(raw->GetRaw(1, &in_place, &size));
  CHECK(size == 64 && copied->size() == 64 && std::memcmp(in_place, copied->data(), 64) == 0);
  for (int32_t i = 0; i < 16; ++i) {
    int32_t value;
    OK(raw->GetRawAtCursor(0, &value));
    CHECK(value == i + 1);
  }
  int32_t beyond;
  FAILS(raw->GetRawAtCursor(0, &beyond), UNSUPPORTED, "attempt to read beyond end of result for output 'OUTPUT0'");
  OK(raw->ResetCursor(0));
  OK(raw->GetRawAtCursor(0, &in_place, 4));
  OK(raw->ResetCursors());
  FAILS(raw->ResetCursor(2), INVALID_ARG, "unexpected batch entry 2 requested for output 'OUTPUT0', batch size is 2");
  FAILS(raw->GetRaw(2, &copied), INVALID_ARG, "unexpected batch entry 2");
  FAILS(raw->GetClassCount(0, &size), UNSUPPORTED, "class result not available for non-CLASS output 'OUTPUT0'");
  nic::InferContext::Result* classes = results["OUTPUT1"].get();
  OK(classes->GetClassCount(1, &size));
  CHECK(size == 3);
  nic::InferContext::Result::ClassResult best;
  OK(classes->GetClassAtCursor(1, &best));
  CHECK(best.idx == 15 && best.value == 14.0f && best.label.empty());
  OK(classes->GetClassAtCursor(1, &best));
  OK(classes->GetClassAtCursor(1, &best));
  FAILS(classes->GetClassAtCursor(1, &best), UNSUPPORTED, "attempt to read beyond end");
  FAILS(classes->GetRawShape(&shape), UNSUPPORTED, "raw shape not available for non-RAW output 'OUTPUT1'");
  FAILS(classes->GetRawAtCursor(0, &beyond), UNSUPPORTED, "raw result not available for non-RAW output 'OUTPUT1'");

  // Asynchronous runs, whose results are taken in and after the callback.
  OK(nic::InferContext::Options::Create(&options));
  options->SetBatchSize(1);
  OK(options->AddRawResult(output0));
  OK(ctx->SetRunOptions(*options));
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::shared_ptr<nic::InferContext::Request>> requests;
  int taken = 0;
  for (int32_t i = 0; i < 6; ++i) {
    SetInputs(ctx, counted, ones, 1);
    OK(ctx->AsyncRun([&, i](nic::InferContext* of, const std::shared_ptr<nic::InferContext::Request>& request) {
      nic::InferContext::ResultMap found;
      if (i % 2 == 0) OK(of->GetAsyncRunResults(request, &found));
      std::lock_guard<std::mutex> lock(mutex);
      CHECK(of == ctx && request->Id() > 0);
      if (i % 2 == 0) {
        ++taken;
      } else {
        requests.push_back(request);
      }
      changed.notify_all();
    }));
  }
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return taken == 3 && requests.size() == 3; });
  }
  for (const auto& request : requests) {
    results.clear();
    bool ready;
    OK(ctx->GetAsyncRunResults(&results, &ready, request, true));
    int32_t first;
    OK(results["OUTPUT0"]->GetRawAtCursor(0, &first));
    CHECK(ready && first == 1);
  }
  FAILS(ctx->GetAsyncRunResults(requests[0], &results), INVALID_ARG, "No asynchronous requests have been sent");
  nic::InferContext::Stat stat;
  OK(ctx->GetStat(&stat));
  CHECK(stat.completed_request_count == 7 && stat.cumulative_total_request_time_ns > 0);
  // A context is released with a request that runs.
  SetInputs(ctx, counted, ones, 1);
  OK(ctx->AsyncRun([](nic::InferContext*, const std::shared_ptr<nic::InferContext::Request>&) {}));
}

static void Strings(nic::InferContext* ctx) {
  std::unique_ptr<nic::InferContext::Options> options;
  OK(nic::InferContext::Options::Create(&options));
  options->SetBatchSize(1);
  for (const auto& output : ctx->Outputs()) OK(options->AddRawResult(output));
  OK(ctx->SetRunOptions(*options));
  const auto& input = ctx->Inputs()[0];
  FAILS(input->SetFromString({"a"}), INVALID_ARG, "must set shape for variable-size input 'INPUT0'");
  FAILS(input->SetShape({-2}), INVALID_ARG, "attempt to set invalid shape dimension -2");
  OK(input->SetShape({3}));
  CHECK(input->Shape().size() == 1 && input->ByteSize() == -1);
  FAILS(input->SetFromString({"a"}), INVALID_ARG, "expecting 3 strings for input 'INPUT0', got 1");
  OK(input->SetFromString({"", "two", std::string("d\0ei", 4)}));
  nic::InferContext::ResultMap results;
  OK(ctx->Run(&results));
  std::string text;
  OK(results["OUTPUT0"]->GetRawAtCursor(0, &text));
  CHECK(text.empty());
  OK(results["OUTPUT0"]->GetRawAtCursor(0, &text));
  CHECK(text == "two");
  OK(results["OUTPUT0"]->GetRawAtCursor(0, &text));
  CHECK(text == std::string("d\0ei", 4));
}

static void SharedMemory(nic::SharedMemoryControlContext* control, nic::InferContext* ctx) {
  const std::string key = "/trtserver_test_" + std::to_string(getpid());
  const int fd = shm_open(key.c_str(), O_RDWR | O_CREAT, 0600);
  CHECK(fd >= 0 && ftruncate(fd, 192) == 0);
  int32_t* memory = static_cast<int32_t*>(mmap(nullptr, 192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  CHECK(memory != MAP_FAILED);
  for (int32_t i = 0; i < 32; ++i) memory[i] = i % 16;
  OK(control->UnregisterAllSharedMemory());
  OK(control->RegisterSharedMemory("region", key, 0, 192));
  FAILS(control->RegisterSharedMemory("region", key, 0, 192), ALREADY_EXISTS, "'region'");
  ni::SharedMemoryStatus status;
  OK(control->GetSharedMemoryStatus(&status));
  CHECK(status.shared_memory_region_size() == 1 && status.shared_memory_region(0).name() == "region");
  CHECK(status.shared_memory_region(0).has_system_shared_memory() && status.shared_memory_region(0).byte_size() == 192);
  CHECK(status.shared_memory_region(0).system_shared_memory().shared_memory_key() == key);
  cudaIpcMemHandle_t handle;
  std::memset(&handle, 0, sizeof(handle));
  CHECK(!control->RegisterCudaSharedMemory("cuda", handle, 64, 0).IsOk());

  std::unique_ptr<nic::InferContext::Options> options;
  OK(nic::InferContext::Options::Create(&options));
  options->SetBatchSize(1);
  OK(options->AddSharedMemoryResult(ctx->Outputs()[0], "region", 128, 64));
  OK(ctx->SetRunOptions(*options));
  const auto& inputs = ctx->Inputs();
  OK(inputs[0]->Reset());
  FAILS(inputs[0]->SetSharedMemory("region", 0, 60), INVALID_ARG,
        "The input 'INPUT0' has shared memory of size 60 bytes while the expected size is 1 * 64 = 64 bytes");
  OK(inputs[0]->SetSharedMemory("region", 0, 64));
  FAILS(inputs[0]->SetSharedMemory("region", 0, 64), INVALID_ARG, "can only be set once with SetSharedMemory");
  OK(inputs[1]->Reset());
  OK(inputs[1]->SetSharedMemory("region", 64, 64));
  nic::InferContext::ResultMap results;
  OK(ctx->Run(&results));
  for (int32_t i = 0; i < 16; ++i) CHECK(memory[32 + i] == 2 * i);
  const uint8_t* buf;
  size_t size;
  FAILS(results["OUTPUT0"]->GetRaw(0, &buf, &size), UNSUPPORTED, "raw result not available for shared memory output 'OUTPUT0'");
  OK(control->UnregisterSharedMemory("region"));
  munmap(memory, 192);
  close(fd);
  shm_unlink(key.c_str());
}

// Sums of a sequence model, over a stream: requests keep their order.
static void Sequence(nic::InferContext* ctx) {
  CHECK(ctx->CorrelationId() == 42);
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::shared_ptr<nic::InferContext::Request>> requests;
  for (int32_t i = 1; i <= 20; ++i) {
    std::unique_ptr<nic::InferContext::Options> options;
    OK(nic::InferContext::Options::Create(&options));
    options->SetBatchSize(1);
    options->SetFlag(ni::InferRequestHeader::FLAG_SEQUENCE_START, i == 1);
    options->SetFlag(ni::InferRequestHeader::FLAG_SEQUENCE_END, i == 20);
    for (const auto& output : ctx->Outputs()) OK(options->AddRawResult(output));
    OK(ctx->SetRunOptions(*options));
    const auto& input = ctx->Inputs()[0];
    OK(input->Reset());
    // The value is gone when the request runs: it was copied, as by the original's gRPC contexts.
    const int32_t value = i;
    OK(input->SetRaw(reinterpret_cast<const uint8_t*>(&value), sizeof(value)));
    OK(ctx->AsyncRun([&](nic::InferContext*, const std::shared_ptr<nic::InferContext::Request>& request) {
      std::lock_guard<std::mutex> lock(mutex);
      requests.push_back(request);
      changed.notify_all();
    }));
  }
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return requests.size() == 20; });
  int32_t expected = 0;
  for (int32_t i = 1; i <= 20; ++i) {
    expected += i;
    nic::InferContext::ResultMap results;
    OK(ctx->GetAsyncRunResults(requests[static_cast<size_t>(i - 1)], &results));
    int32_t sum;
    OK(results["OUTPUT0"]->GetRawAtCursor(0, &sum));
    CHECK(sum == expected);
  }
}

static void Errors(const std::string& url) {
  const nic::Error err(ni::RequestStatusCode::NOT_FOUND, "no model");
  std::ostringstream text;
  text << err;
  CHECK(text.str() == "[ 0] NOT_FOUND - no model" && !err.IsOk() && nic::Error::Success.IsOk());
  ni::RequestStatus status;
  status.set_code(ni::RequestStatusCode::UNAVAILABLE);
  status.set_msg("later");
  status.set_server_id("s");
  status.set_request_id(7);
  text.str("");
  text << nic::Error(status);
  CHECK(text.str() == "[s 7] UNAVAILABLE - later" && flat_error() == "[ 0] SUCCESS");
  std::unique_ptr<nic::InferContext> ctx;
  const nic::Error unknown = nic::InferHttpContext::Create(&ctx, url, "absent");
  fails(unknown, ni::RequestStatusCode::INVALID_ARG, "no status available for unknown model 'absent'", __LINE__);
  CHECK(unknown.ServerId() == "inference:0" && unknown.RequestId() > 0 && ctx == nullptr);
  std::unique_ptr<nic::ServerHealthContext> health;
  // A URL of the other protocol.
  FAILS(nic::InferHttpContext::Create(&ctx, "grpc://localhost:1", "absent"), INVALID_ARG, "is one of gRPC, but the context uses HTTP");
  FAILS(nic::ServerHealthHttpContext::Create(&health, "GRPCS://localhost:1"), INVALID_ARG, "is one of gRPC");
  OK(nic::ServerHealthHttpContext::Create(&health, "localhost:1"));
  bool live;
  FAILS(health->GetLive(&live), INTERNAL, "HTTP client failed: ");
  FAILS(health->GetLive(&live), INTERNAL, " (GET http://");
  OK(nic::ServerHealthGrpcContext::Create(&health, "localhost:1"));
  FAILS(health->GetLive(&live), INTERNAL, "GRPC client failed: ");
  FAILS(health->GetLive(&live), INTERNAL, " (grpc://");
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  const std::string http(argv[1]), grpc(argv[2]);
  const std::map<std::string, std::string> headers{{"X-Test", "yes"}};
  {
    std::unique_ptr<nic::ServerHealthContext> health;
    OK(nic::ServerHealthHttpContext::Create(&health, http));
    Health(health.get());
    OK(nic::ServerHealthHttpContext::Create(&health, http, headers));
    Health(health.get());
    OK(nic::ServerHealthGrpcContext::Create(&health, grpc));
    Health(health.get());

    std::unique_ptr<nic::ServerStatusContext> status;
    OK(nic::ServerStatusHttpContext::Create(&status, http));
    Status(status.get(), 0);
    OK(nic::ServerStatusHttpContext::Create(&status, http, headers));
    OK(nic::ServerStatusHttpContext::Create(&status, http, std::string("addsub_int32")));
    Status(status.get(), 1);
    OK(nic::ServerStatusHttpContext::Create(&status, http, headers, std::string("addsub_int32")));
    Status(status.get(), 1);
    OK(nic::ServerStatusGrpcContext::Create(&status, grpc));
    OK(nic::ServerStatusGrpcContext::Create(&status, grpc, std::string("addsub_int32")));
    Status(status.get(), 1);

    std::unique_ptr<nic::ModelRepositoryContext> repository;
    OK(nic::ModelRepositoryHttpContext::Create(&repository, http));
    Repository(repository.get());
    OK(nic::ModelRepositoryHttpContext::Create(&repository, http, headers));
    OK(nic::ModelRepositoryGrpcContext::Create(&repository, grpc));
    Repository(repository.get());

    std::unique_ptr<nic::ModelControlContext> control;
    OK(nic::ModelControlHttpContext::Create(&control, http, headers));
    Control(control.get());
    OK(nic::ModelControlGrpcContext::Create(&control, grpc));
    Control(control.get());

    std::unique_ptr<nic::InferContext> ctx;
    OK(nic::InferHttpContext::Create(&ctx, http, "addsub_int32"));
    Infer(ctx.get());
    OK(nic::InferHttpContext::Create(&ctx, http, headers, "addsub_int32", -1, false));
    OK(nic::InferGrpcContext::Create(&ctx, grpc, "addsub_int32"));
    Infer(ctx.get());
    OK(nic::InferGrpcStreamContext::Create(&ctx, grpc, "addsub_int32"));
    Infer(ctx.get());
    OK(nic::InferHttpContext::Create(&ctx, http, "identity_string"));
    Strings(ctx.get());
    OK(nic::InferGrpcContext::Create(&ctx, grpc, "identity_string"));
    Strings(ctx.get());

    std::unique_ptr<nic::SharedMemoryControlContext> memory;
    OK(nic::SharedMemoryControlHttpContext::Create(&memory, http, headers));
    OK(nic::InferHttpContext::Create(&ctx, http, "addsub_int32"));
    SharedMemory(memory.get(), ctx.get());
    OK(nic::SharedMemoryControlGrpcContext::Create(&memory, grpc));
    OK(nic::InferGrpcContext::Create(&ctx, grpc, "addsub_int32"));
    SharedMemory(memory.get(), ctx.get());

    OK(nic::InferHttpContext::Create(&ctx, 42, http, headers, "sums"));
    OK(nic::InferHttpContext::Create(&ctx, 42, http, "sums"));
    OK(nic::InferGrpcContext::Create(&ctx, 42, grpc, "sums"));
    OK(nic::InferGrpcStreamContext::Create(&ctx, 42, grpc, "sums", -1, false));
    Sequence(ctx.get());
  }
  Errors(http);
  CHECK(trtc_live_handles() == 0);
  return 0;
}
