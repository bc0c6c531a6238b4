// Classifies pictures with the ensemble `preprocess_resnet50_ensemble`: the server reads and scales
// them.
#include <fstream>
#include <iterator>

#include "classification.h"

namespace {

void Usage(const char* program, std::ostream& out, int code) {
  out << "Usage: " << program << " [options] <image filename / image folder>\n"
      << "\t-v\t\tprint requests and responses\n"
      << "\t-c <topk>\tclasses of a picture, default 1\n"
      << "\t-i <http|grpc>\tprotocol, default http\n"
      << "\t-u <URL>\tof the server, default localhost:8000\n";
  std::exit(code);
}

std::string Contents(const std::string& filename) {
  std::ifstream file(filename, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (bytes.empty()) Fail("unable to read image file " + filename);
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  size_t topk = 1;
  for (int opt; (opt = NextFlag(argc, argv, "hvi:u:c:")) != -1;) {
    switch (opt) {
      case 'h': Usage(argv[0], std::cout, 0); break;
      case 'v': flags.verbose = true; break;
      case 'u': flags.url = optarg; break;
      case 'c': topk = static_cast<size_t>(Number(optarg, "-c", 1)); break;
      case 'i': flags.grpc = IsGrpc(optarg); break;
      default: Usage(argv[0], std::cerr, 1);
    }
  }
  Asked() = flags.url;
  if (optind >= argc) {
    std::cerr << "error: image file or image folder must be specified\n";
    Usage(argv[0], std::cerr, 1);
  }
  NoMoreArguments(argc, argv, 1);

  std::unique_ptr<nic::InferContext> context = Connect(flags, "preprocess_resnet50_ensemble");
  std::vector<std::string> filenames = Filenames(argv[optind]);
  // One request, so the pictures are limited to the largest batch.
  const size_t largest = static_cast<size_t>(context->MaxBatchSize());
  if (filenames.size() > largest) {
    std::cerr << "The number of images exceeds maximum batch size, only the first " << largest
              << " images, sorted by name alphabetically, will be processed" << std::endl;
    filenames.resize(largest);
  }
  RequestClasses(context, filenames.size(), topk);
  const auto input = Input(context, "INPUT");
  for (const std::string& filename : filenames) {
    Check(input->SetFromString({Contents(filename)}), "unable to set data for INPUT");
  }

  Results results;
  Check(context->Run(&results), "unable to run model");
  Show(results, filenames);
  return 0;
}
