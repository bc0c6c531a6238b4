// What the image programs share: files of a folder, and the printed results.
#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "simple.h"

// The file, or the files of a folder in order.
inline std::vector<std::string> Filenames(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) Fail("Failed to find '" + path + "': " + std::strerror(errno));
  if (!S_ISDIR(info.st_mode)) return {path};
  std::vector<std::string> names;
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) Fail("unable to open folder '" + path + "': " + std::strerror(errno));
  while (const dirent* entry = readdir(folder)) {
    const std::string name = path + (path.back() == '/' ? "" : "/") + entry->d_name;
    if (stat(name.c_str(), &info) == 0 && S_ISREG(info.st_mode)) names.push_back(name);
  }
  closedir(folder);
  if (names.empty()) Fail("no images in folder '" + path + "'");
  std::sort(names.begin(), names.end());
  return names;
}

// Asks for the `topk` highest classes of the model's output.
inline void RequestClasses(const std::unique_ptr<nic::InferContext>& context, size_t batch_size, size_t topk) {
  std::unique_ptr<nic::InferContext::Options> options;
  Check(nic::InferContext::Options::Create(&options), "failed initializing infer options");
  options->SetBatchSize(batch_size);
  options->AddClassResult(context->Outputs()[0], topk);
  Check(context->SetRunOptions(*options), "failed initializing batch size");
}

// Prints the classes of each picture of a batch.
inline void Show(const Results& results, const std::vector<std::string>& filenames) {
  if (results.size() != 1) Fail("expected 1 result, got " + std::to_string(results.size()));
  const auto& result = results.begin()->second;
  for (size_t b = 0; b < filenames.size(); ++b) {
    size_t count = 0;
    Check(result->GetClassCount(b, &count), "failed reading class count for batch " + std::to_string(b));
    std::cout << "Image '" << filenames[b] << "':" << std::endl;
    for (size_t c = 0; c < count; ++c) {
      nic::InferContext::Result::ClassResult found;
      Check(result->GetClassAtCursor(b, &found), "failed reading class for batch " + std::to_string(b));
      std::cout << "    " << found.idx << " (" << found.label << ") = " << found.value << std::endl;
    }
  }
}
