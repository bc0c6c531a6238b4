// SPDX-License-Identifier: Apache-2.0 OUTPUT0 = INPUT0 + INPUT1 and OUTPUT1 = INPUT0 - INPUT1, all
// FP32. What is thrown becomes an error of the request, or of the load;
// include/trtserver/backend.hpp says more.
#include <trtserver/backend.hpp>

#include <algorithm>

namespace {

using trtserver::Error;

// What there is once per server: settings of all models, a framework's library, a pool of threads.
struct Backend {
  static trtserver::BackendInfo info() {
    trtserver::BackendInfo info;
    info.name = "{name}";
    info.version = "0.1.0";
    info.platforms = {{"{name}", ""}}; // models need no file
    return info;
  }
  explicit Backend(const trtserver::BackendContext &) {}
};

// What the instances of one version of a model share, such as its weights.
struct Model {
  Model(Backend &, const trtserver::ModelContext &model) {
    // What is wrong with a configuration is said when the model is loaded, not to its callers.
    for (std::size_t i = 0; i < model.inputs(); i++) {
      check(model, model.input(i));
    }
    for (std::size_t i = 0; i < model.outputs(); i++) {
      check(model, model.output(i));
    }
    TRTSERVER_INFO(model.log(), "model '" + model.name() + "' is ready to add");
  }

  static void check(const trtserver::ModelContext &model, const trtserver::TensorDecl &tensor) {
    if (tensor.dtype() != trtserver::Dtype::Fp32) {
      throw Error::invalid("model '" + model.name() + "': tensor '" + std::string(tensor.name()) + "' is " +
                           name_of(tensor.dtype()) + ", this backend computes FP32");
    }
  }
};

// What executes, on a thread of its own.
struct Instance {
  Instance(Model &, const trtserver::InstanceContext &) {}

  void execute(trtserver::Batch &batch) {
    for (std::size_t i = 0; i < batch.size(); i++) {
      // A bad request must not fail the other requests of its batch.
      try {
        respond(batch[i]);
      } catch (const Error &error) {
        batch[i].fail(error);
      }
    }
  }

  static void respond(const trtserver::Request &request) {
    const auto a = request.required_input("INPUT0"), b = request.required_input("INPUT1");
    if (!std::equal(a.shape().begin(), a.shape().end(), b.shape().begin(), b.shape().end())) {
      throw Error::invalid("INPUT0 and INPUT1 differ in shape");
    }
    const auto x = a.as<float>(), y = b.as<float>();
    trtserver::Response response = request.new_response();
    // The memory that goes on the wire; empty if the caller did not ask for the output.
    const auto sums = response.output<float>("OUTPUT0", a.shape());
    for (std::size_t i = 0; i < sums.size(); i++) {
      sums[i] = x[i] + y[i];
    }
    const auto differences = response.output<float>("OUTPUT1", a.shape());
    for (std::size_t i = 0; i < differences.size(); i++) {
      differences[i] = x[i] - y[i];
    }
    response.send();
  }
};

} // namespace

TRTSERVER_BACKEND(Backend, Model, Instance);
