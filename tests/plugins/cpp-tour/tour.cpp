// Everything of trtserver/backend.hpp that the examples leave out: OUT = IN (FP32), in the way that the first call of a
// batch says with its parameter `how`.
#include <trtserver/backend.hpp>

#include <new>
#include <thread>

namespace {

using namespace trtserver;

struct Backend {
  static About about() {
    About about;
    about.name = "cpp_tour";
    about.version = "2.0";
    about.platforms = {{"cpp_tour", ""}};
    about.features = {"test"};
    about.align = 4;
    return about;
  }
  explicit Backend(const BackendContext &context) {
    if (const auto text = context.settings().text("fail")) {
      throw std::runtime_error(std::string(*text));
    }
  }
  std::string runtime() const { return "tour runtime 7"; }
  std::optional<Patch> complete(const ModelContext &model) {
    if (!model.autocomplete() || model.outputs() > 0) {
      return std::nullopt;
    }
    return Patch::text("output [ { name: \"OUT\" data_type: TYPE_FP32 dims: [ -1 ] } ]");
  }
};

struct Model {
  Model(Backend &, const ModelContext &model) : context(model), batches(model.max_batch_size() > 0) {
    if (model.parameters().text("fail")) {
      throw 42;
    }
  }
  const ModelContext context;
  const bool batches;
};

struct Instance {
  Instance(Model &model, const InstanceContext &context)
      : model_(model), calls_(context.log().gauge("cpp_tour_calls", "Calls of the last batch")) {}
  ~Instance() { join(); }

  void execute(Batch &batch) {
    join();
    batch.mark_compute();
    calls_.set(static_cast<double>(batch.size()));
    TRTSERVER_VERBOSE(model_.context.log(), "batch " + std::to_string(batch.id()));
    const std::string how(batch[0].params().text("how").value_or("each"));
    if (how == "merge" || how == "merge_adopt" || how == "keep_first") {
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
    if (how == "keep_first") {
      Reply kept = batch[0].keep();
      // What was moved from owns nothing; the reply answers for its call from a thread of its own.
      thread_ = std::thread([reply = std::move(kept)] { answer(reply, -1); });
    }
  }

  static void answer(const Reply &reply, float value) {
    Response response = reply.respond();
    for (float &to : response.output<float>("OUT", {reply.batch_size(), 1})) {
      to = value;
    }
    response.send();
  }

  void one(const Call &call, const std::string &how) {
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
      Reply dropped = call.keep();
      dropped = Reply(std::move(dropped));
    } else if (how == "wrong_type") {
      call.input("IN").as<std::int32_t>();
    } else if (how == "no_input") {
      call.input("NOPE");
    } else if (how == "no_output") {
      call.respond().output<float>("NOPE", {1});
    } else if (how == "bad_shape") {
      call.respond().output<float>("OUT", {-1, INT64_MAX});
    } else if (how == "twice") {
      echo(call);
      echo(call);
    } else if (how == "after_keep") {
      const Reply reply = call.keep();
      try {
        call.respond();
      } catch (const Error &error) {
        reply.fail(error);
      }
      call.fail(Error::internal("not heard"));
    } else {
      echo(call);
    }
  }

  static void echo(const Call &call) {
    const Tensor in = call.input("IN");
    Response response = call.respond();
    response.param("id", std::string(call.id()));
    response.param("rows", static_cast<std::int64_t>(call.batch_size()));
    response.adopt("OUT", Dtype::Fp32, in.shape(), in.to_vector<float>());
    response.send();
  }

  Model &model_;
  Gauge calls_;
  std::thread thread_;
};

} // namespace

TRTSERVER_BACKEND(Backend, Model, Instance);
