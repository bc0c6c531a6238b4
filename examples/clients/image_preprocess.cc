// A custom backend for image_preprocess_nchw_3x224x224_inception: INPUT is a PNG or JPEG file as a
// string, OUTPUT the picture as FP32 [3, 224, 224], RGB, scaled to [-1, 1). The client library
// reads the pictures.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "custom_backend.h"
#include "trtserver_client.h"

namespace {

const uint32_t kSide = 224;
const size_t kArea = kSide * kSide;

// A file in memory, because the library reads pictures from paths.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& bytes) : file_(memfd_create("picture", 0)) {
    good_ = file_ >= 0 && write(file_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  }
  ~MemoryFile() {
    if (file_ >= 0) close(file_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  bool good() const { return good_; }
  std::string Path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
  bool good_;
};

class Preprocessor {
 public:
  int Run(uint32_t, const Request& request) {
    std::string input;
    if (!request.Read("INPUT", 1 << 20, &input)) return Fail("INPUT cannot be read");
    const size_t rows = request.BatchSize();
    void* content = nullptr;
    if (!request.Output({static_cast<int64_t>(rows), 3, kSide, kSide}, rows * 3 * kArea * sizeof(float), &content)) {
      return Fail("no memory for OUTPUT");
    }
    if (content == nullptr) return 0;
    // Each string follows its length in four bytes.
    size_t at = 0;
    for (size_t row = 0; row < rows; ++row) {
      uint32_t length = 0;
      if (input.size() - at < sizeof length) return Fail("INPUT ends too early");
      std::memcpy(&length, input.data() + at, sizeof length);
      at += sizeof length;
      if (input.size() - at < length) return Fail("INPUT ends too early");
      if (const int error = Scale(input.substr(at, length), static_cast<float*>(content) + row * 3 * kArea)) return error;
      at += length;
    }
    return 0;
  }

  // Called right after Run has returned an error.
  const char* Explain(int) { return error_.c_str(); }

 private:
  int Fail(const std::string& error) {
    error_ = error;
    return 1;
  }

  int Fail(trtc_error* error) {
    error_ = std::string("INPUT is not a picture: ") + trtc_error_message(error);
    trtc_error_free(error);
    return 1;
  }

  int Scale(const std::string& bytes, float* output) {
    const MemoryFile file(bytes);
    if (!file.good()) return Fail("no memory for the picture");
    trtc_image read = {}, image = {};
    if (trtc_error* error = trtc_image_read(file.Path().c_str(), &read)) return Fail(error);
    trtc_error* error = trtc_image_resize(&read, kSide, kSide, &image);
    trtc_image_free(&read);
    if (error != nullptr) return Fail(error);
    for (size_t i = 0; i < 3 * kArea; ++i) output[i % 3 * kArea + i / 3] = image.pixels[i] / 128.0f - 1;
    trtc_image_free(&image);
    return 0;
  }

  std::string error_;
};

}  // namespace

CUSTOM_BACKEND(Preprocessor)
