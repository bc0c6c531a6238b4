// Classifies pictures with a model whose input is a picture and whose output is a vector of
// classes.
#include <condition_variable>
#include <fstream>
#include <mutex>

#include "classification.h"
#include "trtserver_client.h"

namespace {

struct Settings {
  Flags server;
  bool at_once = false, streaming = false;
  std::string model, scaling = "NONE", dump;
  int64_t version = -1;
  size_t batch_size = 1, topk = 1;
};

[[noreturn]] void Usage(const char* program, const std::string& problem) {
  std::ostream& out = problem.empty() ? std::cout : std::cerr;
  if (!problem.empty()) out << "error: " << problem << '\n';
  out << "Usage: " << program << " [options] <image filename / image folder>\n"
      << "    Note that image folder should only contain image files.\n"
      << "\t-v\t\tprint requests and responses\n"
      << "\t-a\t\tsend all requests at once\n"
      << "\t--streaming\tsend requests over one stream; only with gRPC\n"
      << "\t-b <batch size>\tpictures of a request, default 1; a folder's first pictures fill up the last request\n"
      << "\t-c <topk>\tclasses of a picture, default 1\n"
      << "\t-s <NONE|INCEPTION|VGG>\tof pixels, default NONE: as they are, to [-1, 1), or less the mean (104, 117, 123)\n"
      << "\t-p <file>\treceives the first picture as it is sent\n"
      << "\t-m <model name>\trequired\n"
      << "\t-x <model version>\tdefault: the latest\n"
      << "\t-u <URL>\tof the server, default localhost:8000\n"
      << "\t-i <http|grpc>\tprotocol, default http\n"
      << "\t-H <Header:Value>\tHTTP header of each request; may be given several times\n";
  std::exit(problem.empty() ? 0 : 1);
}

Settings Parse(int argc, char** argv) {
  Settings settings;
  const option long_options[] = {{"streaming", 0, nullptr, 'S'}, {"help", 0, nullptr, 'h'}, {nullptr, 0, nullptr, 0}};
  for (int opt; (opt = getopt_long(argc, argv, "hvau:m:x:b:c:s:p:i:H:", long_options, nullptr)) != -1;) {
    const std::string value = optarg == nullptr ? "" : optarg;
    switch (opt) {
      case 'h': Usage(argv[0], "");
      case 'S': settings.streaming = true; break;
      case 'v': settings.server.verbose = true; break;
      case 'a': settings.at_once = true; break;
      case 'u': settings.server.url = value; break;
      case 'm': settings.model = value; break;
      case 'x': settings.version = Number(optarg, "-x", -1); break;
      case 'b': settings.batch_size = static_cast<size_t>(Number(optarg, "-b", 1)); break;
      case 'c': settings.topk = static_cast<size_t>(Number(optarg, "-c", 1)); break;
      case 'p': settings.dump = value; break;
      case 'H': AddHeader(&settings.server.headers, value); break;
      case 's':
        if (value != "NONE" && value != "INCEPTION" && value != "VGG") {
          Fail("unexpected scale type \"" + value + "\", expecting NONE, INCEPTION or VGG");
        }
        settings.scaling = value;
        break;
      case 'i': settings.server.grpc = IsGrpc(value); break;
      default: Usage(argv[0], "unknown option");
    }
  }
  Asked() = settings.server.url;
  if (settings.model.empty()) Usage(argv[0], "-m flag must be specified");
  if (optind >= argc) Usage(argv[0], "image file or image folder must be specified");
  NoMoreArguments(argc, argv, 1);
  if (settings.streaming && !settings.server.grpc) Usage(argv[0], "Streaming is only allowed with gRPC protocol");
  WarnOfHeaders(settings.server);
  return settings;
}

// The input of the model.
struct Shape {
  size_t channels, height, width;
  bool channels_first;
  ni::DataType type;
};

// Refuses models that do not classify pictures.
Shape ShapeOf(const nic::InferContext& context, size_t batch_size) {
  const std::string model = "model \"" + context.ModelName() + "\"";
  if (context.Inputs().size() != 1) Fail("expecting 1 input, " + model + " has " + std::to_string(context.Inputs().size()));
  if (context.Outputs().size() != 1) Fail("expecting 1 output, " + model + " has " + std::to_string(context.Outputs().size()));
  const auto& input = context.Inputs()[0];
  const auto& output = context.Outputs()[0];
  if (output->DType() != ni::DataType::TYPE_FP32) {
    Fail("expecting model output datatype to be TYPE_FP32, " + model + " output type is " + ni::DataType_Name(output->DType()));
  }
  // A vector, which may have more dimensions as long as they are 1.
  size_t above_one = 0;
  for (const auto dim : output->Dims()) {
    if (dim == -1) Fail("variable-size dimension in model output not supported");
    above_one += dim > 1;
  }
  if (above_one > 1) Fail("expecting model output to be a vector");
  const size_t largest = static_cast<size_t>(context.MaxBatchSize());
  if (largest == 0 && batch_size != 1) Fail("batching not supported for " + model);
  if (largest > 0 && batch_size > largest) Fail("expecting batch size <= " + std::to_string(largest) + " for " + model);
  const auto& dims = input->Dims();
  if (dims.size() != 3) {
    Fail("expecting model input to have 3 dimensions, " + model + " input has " + std::to_string(dims.size()));
  }
  for (const auto dim : dims) {
    if (dim == -1) Fail("variable-size dimension in model input not supported");
  }
  Shape shape;
  shape.channels_first = input->Format() == ni::ModelInput::FORMAT_NCHW;
  if (!shape.channels_first && input->Format() != ni::ModelInput::FORMAT_NHWC) {
    Fail("unexpected input format " + ni::ModelInput_Format_Name(input->Format()) + ", expecting FORMAT_NHWC or FORMAT_NCHW");
  }
  const size_t first = shape.channels_first ? 1 : 0;
  shape.channels = static_cast<size_t>(dims[shape.channels_first ? 0 : 2]);
  shape.height = static_cast<size_t>(dims[first]);
  shape.width = static_cast<size_t>(dims[first + 1]);
  shape.type = input->DType();
  if (shape.channels != 1 && shape.channels != 3) {
    Fail("expecting an input of 1 or 3 channels, " + model + " has " + std::to_string(shape.channels));
  }
  return shape;
}

// Pixels as numbers of the model's type, scaled, in the model's order.
template <typename T>
std::vector<uint8_t> Numbers(const trtc_image& image, const Shape& shape, const std::string& scaling) {
  const float means[] = {104, 117, 123};
  const size_t area = shape.width * shape.height;
  std::vector<T> numbers(area * shape.channels);
  for (size_t i = 0; i < area; ++i) {
    const uint8_t* rgb = image.pixels + 3 * i;
    // The weights of ITU-R 601, rounded.
    const uint8_t grey = static_cast<uint8_t>((rgb[0] * 299 + rgb[1] * 587 + rgb[2] * 114 + 500) / 1000);
    for (size_t c = 0; c < shape.channels; ++c) {
      float value = shape.channels == 1 ? grey : rgb[c];
      if (scaling == "INCEPTION") value = value / 128 - 1;
      if (scaling == "VGG") value -= shape.channels == 1 ? 128 : means[c];
      numbers[shape.channels_first ? c * area + i : i * shape.channels + c] = static_cast<T>(value);
    }
  }
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(numbers.data());
  return std::vector<uint8_t>(bytes, bytes + numbers.size() * sizeof(T));
}

void CheckImage(trtc_error* error) {
  if (error != nullptr) Fail(trtc_error_message(error));
}

std::vector<uint8_t> Picture(const std::string& filename, const Shape& shape, const std::string& scaling) {
  trtc_image read = {}, image = {};
  CheckImage(trtc_image_read(filename.c_str(), &read));
  CheckImage(trtc_image_resize(&read, static_cast<uint32_t>(shape.width), static_cast<uint32_t>(shape.height), &image));
  std::vector<uint8_t> bytes;
  switch (shape.type) {
    case ni::DataType::TYPE_UINT8: bytes = Numbers<uint8_t>(image, shape, scaling); break;
    case ni::DataType::TYPE_INT8: bytes = Numbers<int8_t>(image, shape, scaling); break;
    case ni::DataType::TYPE_UINT16: bytes = Numbers<uint16_t>(image, shape, scaling); break;
    case ni::DataType::TYPE_INT16: bytes = Numbers<int16_t>(image, shape, scaling); break;
    case ni::DataType::TYPE_INT32: bytes = Numbers<int32_t>(image, shape, scaling); break;
    case ni::DataType::TYPE_FP32: bytes = Numbers<float>(image, shape, scaling); break;
    case ni::DataType::TYPE_FP64: bytes = Numbers<double>(image, shape, scaling); break;
    default: Fail("unexpected input datatype \"" + ni::DataType_Name(shape.type) + "\"");
  }
  trtc_image_free(&image);
  trtc_image_free(&read);
  return bytes;
}

std::unique_ptr<nic::InferContext> Connect(const Settings& settings) {
  const Flags& server = settings.server;
  std::unique_ptr<nic::InferContext> context;
  nic::Error error = nic::Error::Success;
  if (settings.streaming) {
    error = nic::InferGrpcStreamContext::Create(&context, server.url, settings.model, settings.version, server.verbose);
  } else if (server.grpc) {
    error = nic::InferGrpcContext::Create(&context, server.url, settings.model, settings.version, server.verbose);
  } else {
    error = nic::InferHttpContext::Create(
        &context, server.url, server.headers, settings.model, settings.version, server.verbose);
  }
  Check(error, "unable to create inference context");
  return context;
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings = Parse(argc, argv);
  std::unique_ptr<nic::InferContext> context = Connect(settings);
  const Shape shape = ShapeOf(*context, settings.batch_size);

  const std::vector<std::string> filenames = Filenames(argv[optind]);
  std::vector<std::vector<uint8_t>> pictures;
  for (const std::string& filename : filenames) pictures.push_back(Picture(filename, shape, settings.scaling));
  if (!settings.dump.empty()) {
    std::ofstream dump(settings.dump, std::ios::binary);
    dump.write(reinterpret_cast<const char*>(pictures[0].data()), static_cast<std::streamsize>(pictures[0].size()));
    if (!dump.flush()) Fail("unable to write '" + settings.dump + "'");
  }

  RequestClasses(context, settings.batch_size, settings.topk);
  const size_t requests = (filenames.size() + settings.batch_size - 1) / settings.batch_size;
  std::vector<Results> results(requests);
  std::vector<std::vector<std::string>> sent(requests);
  // Completed requests of -a, with their numbers.
  std::mutex mutex;
  std::condition_variable changed;
  std::map<size_t, std::shared_ptr<nic::InferContext::Request>> completed;
  const auto& input = context->Inputs()[0];
  for (size_t number = 0; number < requests; ++number) {
    Check(input->Reset(), "failed resetting input");
    for (size_t i = 0; i < settings.batch_size; ++i) {
      // The first pictures fill up the last batch.
      const size_t index = (number * settings.batch_size + i) % filenames.size();
      sent[number].push_back(filenames[index]);
      Check(input->SetRaw(pictures[index]), "failed setting input");
    }
    if (!settings.at_once) {
      Check(context->Run(&results[number]), "failed sending synchronous infer request");
      continue;
    }
    const auto callback = [&, number](nic::InferContext*, const std::shared_ptr<nic::InferContext::Request>& request) {
      const std::lock_guard<std::mutex> lock(mutex);
      completed[number] = request;
      changed.notify_all();
    };
    Check(context->AsyncRun(callback), "failed sending asynchronous infer request");
  }
  if (settings.at_once) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return completed.size() == requests; });
    for (const auto& request : completed) {
      Check(context->GetAsyncRunResults(request.second, &results[request.first]), "failed receiving infer response");
    }
  }
  for (size_t number = 0; number < requests; ++number) {
    std::cout << "Request " << number << ", batch size " << settings.batch_size << std::endl;
    Show(results[number], sent[number]);
  }
  return 0;
}
