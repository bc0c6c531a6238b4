// Everything of trtserver/backend.hpp that the examples leave out: OUT = IN (FP32), in the way that
// the first request of a batch says with its parameter `how`.
#include <trtserver/backend.hpp>

#include <new>
#include <thread>

namespace {

using namespace trtserver;

struct Backend {
  static BackendInfo info() {
    BackendInfo info;
    info.name = "cpp_tour";
    info.version = "2.0";
    info.platforms = {{"cpp_tour", ""}};
    info.align = 4;
    return info;
  }
  explicit Backend(const BackendContext &context) {
    if (const auto text = context.settings().text("fail")) {
      throw std::runtime_error(std::string(*text));
    }
  }
  std::string runtime() const { return "tour runtime 7"; }
  Completion autocomplete(const ModelContext &model) {
    Completion made;
    if (model.autocomplete() && model.outputs() == 0) {
      made.patch = Patch::text("output [ { name: \"OUT\" data_type: TYPE_FP32 dims: [ -1 ] } ]");
    }
    made.state = std::string(model.name());
    return made;
  }
};

struct Model {
  Model(Backend &, const ModelContext &model) : context(model), batches(model.max_batch_size() > 0) {
    if (model.parameters().text("fail")) {
      throw 42;
    }
    const auto *const state = model.state<std::string>();
    if (state != nullptr && *state != model.name()) {
      throw Error::internal("the state is " + *state);
    }
    TRTSERVER_INFO(model.log(), std::string("state: ") + (state != nullptr ? *state : "none"));
  }
  const ModelContext context;
  const bool batches;
};

struct Instance {
  Instance(Model &model, const InstanceContext &context)
      : model_(model), calls_(context.log().gauge("cpp_tour_calls", "Requests of the last batch")) {}
  ~Instance() { join(); }

  void execute(Batch &batch) {
    join();
    batch.mark_compute_start();
    calls_.set(static_cast<double>(batch.size()));
    TRTSERVER_VERBOSE(model_.context.log(), "batch " + std::to_string(batch.id()));
    const std::string how(batch[0].params().text("how").value_or("each"));
    if (how == "merge" || how == "merge_adopt" || how == "detach_first") {
      return merged(batch, how);
    }
    for (std::size_t i = 0; i < batch.size(); i++) {
      one(batch[i], how);
    }
  }

private:
  void join() {
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  void merged(Batch &batch, const std::string &how) {
    const Gathered in = batch.gather(0);
    const auto values = in.as<float>();
    if (how == "merge_adopt") {
      batch.scatter_adopt("OUT", Dtype::Fp32, in.shape, std::vector<float>(values.begin(), values.end()));
      return;
    }
    const auto out = batch.scatter<float>("OUT", in.shape);
    for (std::size_t i = 0; i < out.size(); i++) {
      out[i] = values[i];
    }
    if (how == "detach_first") {
      Responder detached = batch[0].detach();
      // A moved-from responder owns nothing; the other one responds on another thread.
      thread_ = std::thread([responder = std::move(detached)] { respond(responder, -1); });
    }
  }

  static void respond(const Responder &responder, float value) {
    Response response = responder.new_response();
    for (float &to : response.output<float>("OUT", {responder.batch_size(), 1})) {
      to = value;
    }
    response.send();
  }

  void one(const Request &request, const std::string &how) {
    if (how == "throw_error") {
      throw Error(Code::Unavailable, "come again", TRTS_ERROR_RETRYABLE);
    } else if (how == "throw_std") {
      std::vector<int>().at(1);
    } else if (how == "throw_alloc") {
      throw std::bad_alloc();
    } else if (how == "throw_int") {
      throw 7;
    } else if (how == "silent") {
      return;
    } else if (how == "drop") {
      Responder dropped = request.detach();
      dropped = Responder(std::move(dropped));
    } else if (how == "wrong_type") {
      request.required_input("IN").as<std::int32_t>();
    } else if (how == "no_input") {
      request.required_input("NOPE");
    } else if (how == "no_output") {
      request.new_response().output<float>("NOPE", {1});
    } else if (how == "bad_shape") {
      request.new_response().output<float>("OUT", {-1, INT64_MAX});
    } else if (how == "twice") {
      echo(request);
      echo(request);
    } else if (how == "after_detach") {
      const Responder responder = request.detach();
      try {
        request.new_response();
      } catch (const Error &error) {
        responder.fail(error);
      }
      request.fail(Error::internal("not heard"));
    } else {
      echo(request);
    }
  }

  static void echo(const Request &request) {
    const Tensor in = request.required_input("IN");
    Response response = request.new_response();
    response.param("id", std::string(request.id()));
    response.param("rows", static_cast<std::int64_t>(request.batch_size()));
    response.adopt("OUT", Dtype::Fp32, in.shape(), in.to_vector<float>());
    response.send();
  }

  Model &model_;
  Gauge calls_;
  std::thread thread_;
};

} // namespace

TRTSERVER_BACKEND(Backend, Model, Instance);
