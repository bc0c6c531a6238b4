// Two platforms that differ in their files: `bundle`, any one directory with a file `bundle.txt` in
// it, and `flat`, one file named model.flat. OUTPUT0 is the name of the model file (STRING); INPUT0
// is ignored.
#include <trtserver/backend.hpp>

#include <fstream>

namespace {

using namespace trtserver;

struct Backend {
  static BackendInfo info() {
    BackendInfo info;
    info.name = "cpp_bundle";
    info.version = "1.0";
    info.platforms = {{"flat", "model.flat"}, {"bundle", "model.bundle"}};
    return info;
  }
  explicit Backend(const BackendContext &) {}

  static std::optional<std::string_view> model_probe(const ModelProbe &probe) {
    std::optional<std::string_view> found;
    for (std::size_t i = 0; i < probe.size(); i++) {
      const bool is_model = probe.platform() == "bundle"
                                ? probe[i].is_dir && has_index(probe.version_dir(), probe[i].name)
                                : !probe[i].is_dir && probe[i].name == probe.default_file();
      if (is_model && found) {
        throw Error::invalid("both '" + std::string(*found) + "' and '" + std::string(probe[i].name) + "' are bundles");
      }
      if (is_model) {
        found = probe[i].name;
      }
    }
    if (!found) {
      const std::string what =
          probe.platform() == "bundle" ? "a directory with a file 'bundle.txt'" : std::string(probe.default_file());
      throw Error::not_found("expected " + what);
    }
    return found;
  }

  Patch autocomplete(const ModelContext &) {
    return Patch::text("input [ { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ -1, -1 ] } ] "
                       "output [ { name: \"OUTPUT0\" data_type: TYPE_STRING dims: [ 1 ] } ]");
  }

private:
  static bool has_index(std::string_view dir, std::string_view name) {
    return std::ifstream(std::string(dir) + "/" + std::string(name) + "/bundle.txt").good();
  }
};

struct Model {
  Model(Backend &, const ModelContext &model) : file(model.file()) {}
  const std::string file;
};

struct Instance {
  Instance(Model &model, const InstanceContext &) : model_(model) {}

  void execute(Batch &batch) {
    for (std::size_t i = 0; i < batch.size(); i++) {
      Response response = batch[i].new_response();
      response.put_strings("OUTPUT0", {1}, std::vector<std::string>{model_.file});
      response.send();
    }
  }

private:
  const Model &model_;
};

} // namespace

TRTSERVER_BACKEND(Backend, Model, Instance);
