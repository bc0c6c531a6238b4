// A framework that the host has never heard of: platform `lightgbm_text`, default file `model.lgb`.
// The file has a tree of one split: `feature threshold below above`. OUTPUT is `below` for rows
// whose feature is below the threshold, else `above`.
#include <trtserver/backend.hpp>

#include <fstream>

namespace {

using namespace trtserver;

struct Backend {
  static BackendInfo info() {
    BackendInfo info;
    info.name = "lightgbm";
    info.version = "4.5";
    info.platforms = {{"lightgbm_text", "model.lgb"}};
    info.flags = TRTS_BACKEND_LISTS_FIELDS | TRTS_BACKEND_GRAPH_LEVELS | TRTS_BACKEND_PROFILES;
    return info;
  }
  explicit Backend(const BackendContext &) {}

  std::optional<Patch> autocomplete(const ModelContext &model) {
    if (!model.autocomplete() || model.outputs() != 0) {
      return std::nullopt;
    }
    return Patch::text("max_batch_size: 8 "
                       "input [ { name: \"INPUT\" data_type: TYPE_FP32 dims: [ 2 ] } ] "
                       "output [ { name: \"OUTPUT\" data_type: TYPE_FP32 dims: [ 1 ] } ]");
  }
};

struct Model {
  Model(Backend &, const ModelContext &model) {
    const std::string path = std::string(model.version_dir()) + "/" + std::string(model.file());
    if (!(std::ifstream(path) >> feature >> threshold >> below >> above)) {
      throw Error::not_found("expected a tree in " + path);
    }
  }
  std::size_t feature = 0;
  float threshold = 0, below = 0, above = 0;
};

struct Instance {
  Instance(Model &model, const InstanceContext &) : model_(model) {}

  void execute(Batch &batch) {
    for (std::size_t i = 0; i < batch.size(); i++) {
      const std::vector<float> rows = batch[i].required_input("INPUT").to_vector<float>();
      const std::size_t count = rows.size() / 2;
      Response response = batch[i].new_response();
      const auto leaves = response.output<float>("OUTPUT", {static_cast<std::int64_t>(count), 1});
      for (std::size_t row = 0; row < count; row++) {
        leaves[row] = rows[2 * row + model_.feature] < model_.threshold ? model_.below : model_.above;
      }
      response.send();
    }
  }

private:
  const Model &model_;
};

} // namespace

TRTSERVER_BACKEND(Backend, Model, Instance);
