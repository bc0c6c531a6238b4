// A program in the style of TRTIS 0.12: one header, asynchronous requests that are asked for: v0_12
// HTTP_URL GRPC_URL.
#include <iostream>

#include "check.h"
#include "src/clients/c++/request.h"
#include "src/core/api.pb.h"
#include "src/core/model_config.h"
#include "src/core/model_config.pb.h"

namespace ni = nvidia::inferenceserver;
namespace nic = nvidia::inferenceserver::client;

#define OK(call)                                                              \
  do {                                                                        \
    const nic::Error err_ = (call);                                           \
    if (!err_.IsOk()) {                                                       \
      std::cerr << __FILE__ << ":" << __LINE__ << ": " << err_ << std::endl;  \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

static void Infer(std::unique_ptr<nic::InferContext>& ctx) {
  std::unique_ptr<nic::InferContext::Options> options;
  OK(nic::InferContext::Options::Create(&options));
  options->SetBatchSize(1);
  for (const auto& output : ctx->Outputs()) OK(options->AddRawResult(output));
  OK(ctx->SetRunOptions(*options));
  std::shared_ptr<nic::InferContext::Request> request, ready;
  const nic::Error none = ctx->GetReadyAsyncRequest(&ready, false);
  CHECK(none.Code() == ni::RequestStatusCode::UNAVAILABLE);
  CHECK(none.Message() == "No asynchronous requests have been sent");

  std::vector<uint8_t> values(64);
  for (size_t i = 0; i < 16; ++i) values[4 * i] = static_cast<uint8_t>(i);
  CHECK(ni::GetByteSize(ctx->Inputs()[0]->DType(), ctx->Inputs()[0]->Dims()) == 64);
  std::vector<std::shared_ptr<nic::InferContext::Request>> requests;
  for (int i = 0; i < 4; ++i) {
    for (const auto& input : ctx->Inputs()) {
      OK(input->Reset());
      OK(input->SetRaw(values));
    }
    OK(ctx->AsyncRun(&request));
    requests.push_back(request);
  }
  // Waits, then reports what has completed.
  std::map<std::string, std::unique_ptr<nic::InferContext::Result>> results;
  for (size_t left = requests.size(); left > 0; --left) {
    OK(ctx->GetReadyAsyncRequest(&ready, true));
    OK(ctx->GetAsyncRunResults(&results, ready, true));
    for (int32_t i = 0; i < 16; ++i) {
      int32_t sum;
      OK(results["OUTPUT0"]->GetRawAtCursor(0, &sum));
      CHECK(sum == 2 * i);
    }
  }
  OK(ctx->AsyncRun(&request));
  nic::Error err(ni::RequestStatusCode::UNAVAILABLE);
  while (err.Code() == ni::RequestStatusCode::UNAVAILABLE) {
    err = ctx->GetAsyncRunResults(&results, request, false);
    CHECK(err.IsOk() || err.Message() == "Request is not ready.");
  }
  CHECK(err.IsOk() && results.size() == 2);
  bool is_ready;
  OK(ctx->AsyncRun(&request));
  OK(ctx->GetReadyAsyncRequest(&ready, &is_ready, true));
  CHECK(is_ready && ready == request);
  nic::InferContext::Stat stat;
  OK(ctx->GetStat(&stat));
  CHECK(stat.completed_request_count == 6);
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  const std::string http(argv[1]), grpc(argv[2]);
  {
    std::unique_ptr<nic::ServerHealthContext> health;
    OK(nic::ServerHealthHttpContext::Create(&health, http));
    bool ready;
    OK(health->GetReady(&ready));
    std::unique_ptr<nic::ServerStatusContext> status;
    OK(nic::ServerStatusGrpcContext::Create(&status, grpc, std::string("addsub_int32")));
    ni::ServerStatus server;
    OK(status->GetServerStatus(&server));
    CHECK(ready && server.model_status().at("addsub_int32").config().output_size() == 2);
    std::unique_ptr<nic::ProfileContext> profile;
    OK(nic::ProfileHttpContext::Create(&profile, http));
    CHECK(profile->StartProfile().Message() == "Profile API not enabled");
    OK(nic::ProfileGrpcContext::Create(&profile, grpc));
    CHECK(profile->StopProfile().Message() == "Profile API not enabled");

    std::unique_ptr<nic::InferContext> ctx;
    OK(nic::InferHttpContext::Create(&ctx, http, "addsub_int32", -1, false));
    Infer(ctx);
    OK(nic::InferGrpcContext::Create(&ctx, grpc, "addsub_int32"));
    Infer(ctx);
    OK(nic::InferGrpcStreamContext::Create(&ctx, grpc, "addsub_int32"));
    Infer(ctx);
  }
  CHECK(trtc_live_handles() == 0);
  return 0;
}
