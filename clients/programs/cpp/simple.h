// What the simple_* programs share: their flags, contexts for both protocols, the check of results,
// and the way they fail.
#pragma once

#include <getopt.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "src/clients/c++/library/request_grpc.h"
#include "src/clients/c++/library/request_http.h"

namespace ni = nvidia::inferenceserver;
namespace nic = nvidia::inferenceserver::client;

typedef std::map<std::string, std::unique_ptr<nic::InferContext::Result>> Results;

[[noreturn]] inline void Fail(const std::string& message) {
  std::cout.flush();
  std::cerr << "error: " << message << std::endl;
  std::exit(1);
}

// The server's URL, for messages.
inline std::string& Asked() {
  static std::string url;
  return url;
}

// Ends the program if a call has failed.
inline void Check(const nic::Error& error, const std::string& what) {
  if (error.IsOk()) return;
  std::ostringstream text;
  text << what << ": " << error;
  if (text.str().find(Asked()) == std::string::npos) text << " (server " << Asked() << ")";
  Fail(text.str());
}

// A number of a flag, not below `least`.
inline long Number(const char* text, const std::string& flag, long least) {
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text, &end, 10);
  if (errno == ERANGE) Fail(flag + " is out of range, got '" + text + "'");
  if (end == text || *end != '\0' || value < least) {
    Fail(flag + " must be a number >= " + std::to_string(least) + ", got '" + text + "'");
  }
  return value;
}

// `argument` is "Name:Value".
inline void AddHeader(std::map<std::string, std::string>* headers, const std::string& argument) {
  const size_t colon = argument.find(':');
  if (colon == std::string::npos) Fail("-H must be 'Header:Value', got '" + argument + "'");
  (*headers)[argument.substr(0, colon)] = argument.substr(colon + 1);
}

// Whether the argument of -i, in any case, is gRPC.
inline bool IsGrpc(const std::string& argument) {
  std::string name = argument;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name != "http" && name != "grpc") Fail("unexpected protocol type \"" + argument + "\", expecting HTTP or gRPC");
  return name == "grpc";
}

// The next flag of `letters`, with --help as -h.
inline int NextFlag(int argc, char** argv, const char* letters) {
  static const option long_options[] = {{"help", 0, nullptr, 'h'}, {nullptr, 0, nullptr, 0}};
  return getopt_long(argc, argv, letters, long_options, nullptr);
}

// Refuses arguments behind the flags and `count` others.
inline void NoMoreArguments(int argc, char** argv, int count) {
  if (optind + count < argc) Fail(std::string("unexpected argument '") + argv[optind + count] + "'");
}

struct Flags {
  bool verbose = false;
  bool grpc = false;
  std::string url = "localhost:8000";
  std::map<std::string, std::string> headers;
};

inline void WarnOfHeaders(const Flags& flags) {
  if (!flags.grpc || flags.headers.empty()) return;
  std::cerr << "WARNING: HTTP headers specified with -H are ignored when using non-HTTP protocol." << std::endl;
}

// Reads -v, -u, -i and, if the program takes them, -H. -h prints the usage.
inline Flags ParseFlags(int argc, char** argv, bool takes_headers) {
  const auto usage = [&](std::ostream& out, int code) {
    out << "Usage: " << argv[0] << " [options]\n"
        << "\t-v\t\tprint requests and responses\n"
        << "\t-i <http|grpc>\tprotocol, default http\n"
        << "\t-u <URL>\tof the server, default localhost:8000\n";
    if (takes_headers) out << "\t-H <Header:Value>\tHTTP header of each request; may be given several times\n";
    std::exit(code);
  };
  Flags flags;
  for (int opt; (opt = NextFlag(argc, argv, takes_headers ? "hvi:u:H:" : "hvi:u:")) != -1;) {
    const std::string value = optarg == nullptr ? "" : optarg;
    switch (opt) {
      case 'h': usage(std::cout, 0); break;
      case 'v': flags.verbose = true; break;
      case 'u': flags.url = value; break;
      case 'H': AddHeader(&flags.headers, value); break;
      case 'i': flags.grpc = IsGrpc(value); break;
      default: usage(std::cerr, 1);
    }
  }
  NoMoreArguments(argc, argv, 0);
  Asked() = flags.url;
  WarnOfHeaders(flags);
  return flags;
}

// A context for the latest version of a model.
inline std::unique_ptr<nic::InferContext> Connect(const Flags& flags, const std::string& model) {
  std::unique_ptr<nic::InferContext> context;
  const nic::Error error =
      flags.grpc ? nic::InferGrpcContext::Create(&context, flags.url, model, -1, flags.verbose)
                 : nic::InferHttpContext::Create(&context, flags.url, flags.headers, model, -1, flags.verbose);
  Check(error, "unable to create inference context");
  return context;
}

// Prints health and status of the server.
inline void ShowServer(const Flags& flags, const std::string& model) {
  std::unique_ptr<nic::ServerHealthContext> health;
  Check(flags.grpc ? nic::ServerHealthGrpcContext::Create(&health, flags.url, flags.verbose)
                   : nic::ServerHealthHttpContext::Create(&health, flags.url, flags.headers, flags.verbose),
        "unable to create health context");
  bool live = false, ready = false;
  Check(health->GetLive(&live), "unable to get server liveness");
  Check(health->GetReady(&ready), "unable to get server readiness");
  std::cout << "Health for model " << model << ":\nLive: " << live << "\nReady: " << ready << std::endl;

  std::unique_ptr<nic::ServerStatusContext> status_context;
  Check(flags.grpc
            ? nic::ServerStatusGrpcContext::Create(&status_context, flags.url, model, flags.verbose)
            : nic::ServerStatusHttpContext::Create(&status_context, flags.url, flags.headers, model, flags.verbose),
        "unable to create status context");
  ni::ServerStatus status;
  Check(status_context->GetServerStatus(&status), "unable to get status");
  std::cout << "Status for model " << model << ":\n" << status.DebugString() << std::endl;
}

inline std::shared_ptr<nic::InferContext::Input> Input(
    const std::unique_ptr<nic::InferContext>& context, const std::string& name) {
  std::shared_ptr<nic::InferContext::Input> input;
  Check(context->GetInput(name, &input), "unable to get " + name);
  Check(input->Reset(), "unable to reset " + name);
  return input;
}

// Asks for all outputs of the model, for a batch of one.
inline void RequestOutputs(const std::unique_ptr<nic::InferContext>& context) {
  std::unique_ptr<nic::InferContext::Options> options;
  Check(nic::InferContext::Options::Create(&options), "unable to create inference options");
  options->SetBatchSize(1);
  for (const auto& output : context->Outputs()) options->AddRawResult(output);
  Check(context->SetRunOptions(*options), "unable to set inference options");
}

// Sets the inputs of `simple`: 0 to 15, and ones. The vectors must stay as they are until the
// request has completed.
inline void SetInputs(
    const std::unique_ptr<nic::InferContext>& context, const std::vector<int32_t>& input0,
    const std::vector<int32_t>& input1) {
  const auto set = [&](const char* name, const std::vector<int32_t>& values) {
    Check(Input(context, name)->SetRaw(reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(int32_t)),
          std::string("unable to set data for ") + name);
  };
  set("INPUT0", input0);
  set("INPUT1", input1);
}

inline std::vector<int32_t> ZeroToFifteen() {
  std::vector<int32_t> values(16);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i);
  return values;
}

// Prints one sum and one difference, and ends the program if one is wrong.
inline void CheckPair(int32_t a, int32_t b, int32_t sum, int32_t difference) {
  std::cout << a << " + " << b << " = " << sum << '\n' << a << " - " << b << " = " << difference << std::endl;
  if (a + b != sum) Fail("incorrect sum");
  if (a - b != difference) Fail("incorrect difference");
}

// Prints and checks the results of `simple`.
inline void CheckResults(Results& results, const std::vector<int32_t>& input0, const std::vector<int32_t>& input1) {
  if (results.size() != 2) Fail("expected 2 results, got " + std::to_string(results.size()));
  for (size_t i = 0; i < input0.size(); ++i) {
    int32_t sum = 0, difference = 0;
    const std::string at = " result at idx " + std::to_string(i);
    Check(results["OUTPUT0"]->GetRawAtCursor(0, &sum), "unable to get OUTPUT0" + at);
    Check(results["OUTPUT1"]->GetRawAtCursor(0, &difference), "unable to get OUTPUT1" + at);
    CheckPair(input0[i], input1[i], sum, difference);
  }
}
