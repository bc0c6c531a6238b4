// SPDX-License-Identifier: Apache-2.0 Splits TEXT into words and sends one response per word:
// several responses to one request, from a thread of the backend, until the text ends or the
// request is cancelled.
//
// Model parameters (or, for all models, settings of the backend): `delay_ms` between two words, 0
// by default; `max_words` that a text may have, no limit by default.
#include <trtserver/backend.hpp>

#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <sstream>
#include <thread>

namespace {

using trtserver::Error;
using Clock = std::chrono::steady_clock;

struct Streaming {
  static trtserver::BackendInfo info() {
    trtserver::BackendInfo info;
    info.name = "cpp_streaming";
    info.version = "0.2.0";
    info.platforms = {{"cpp_streaming", ""}}; // models need no file
    info.max_in_flight = 64;                  // requests that one instance may process at the same time
    return info;
  }
  explicit Streaming(const trtserver::BackendContext &) {}
};

// What the instances of one version of a model share.
struct Splitter {
  Splitter(Streaming &, const trtserver::ModelContext &model)
      : delay(number(model, "delay_ms", 0)), max_words(static_cast<std::size_t>(number(model, "max_words", INT32_MAX))),
        words(model.log().counter("cpp_streaming_words_total", "Words sent", {{"model", model.name()}})),
        cancelled(model.log().counter("cpp_streaming_cancelled_total", "Texts cancelled before the last word",
                                      {{"model", model.name()}})) {
    TRTSERVER_INFO(model.log(), "sends a word every " + std::to_string(delay.count()) + " ms");
  }

  // Invalid parameters fail the load of the model.
  static std::int64_t number(const trtserver::ModelContext &model, const char *key, std::int64_t otherwise) {
    const std::int64_t value = model.parameters().integer(key, model.settings().integer(key, otherwise));
    if (value < 0 || value > INT32_MAX) {
      throw Error::invalid("model '" + model.name() + "': parameter '" + key + "' is out of range");
    }
    return value;
  }

  const std::chrono::milliseconds delay;
  const std::size_t max_words;
  const trtserver::Counter words, cancelled;
};

// A request whose words are being sent.
struct Job {
  trtserver::Responder responder;
  std::vector<std::string> words;
  std::size_t next = 0;
  Clock::time_point due = Clock::now();
};

class Worker {
public:
  Worker(Splitter &model, const trtserver::InstanceContext &) : model_(model), thread_([this] { send_words(); }) {}

  // The host closes an instance when all its requests are finished, or after a grace period.
  ~Worker() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // Detaches the requests and returns: the other thread sends the responses.
  void execute(trtserver::Batch &batch) {
    for (std::size_t i = 0; i < batch.size(); i++) {
      const trtserver::Request request = batch[i];
      std::istringstream text(request.required_input("TEXT").to_strings().at(0));
      std::vector<std::string> words;
      for (std::string word; text >> word;) {
        words.push_back(word);
      }
      if (words.size() > model_.max_words) {
        request.fail(Error::invalid("the text has " + std::to_string(words.size()) + " words, this model takes " +
                                 std::to_string(model_.max_words)));
        continue;
      }
      std::list<Job> job;
      job.push_back({request.detach(), std::move(words)});
      const std::lock_guard<std::mutex> lock(mutex_);
      jobs_.splice(jobs_.end(), job);
    }
    changed_.notify_all();
  }

  // A request was cancelled. Wakes the thread, which checks all jobs. The lock orders this
  // notification after the thread's check or before it; without the lock it could be lost between
  // the check and the wait.
  void cancel(trtserver::RequestKey) {
    const std::lock_guard<std::mutex> lock(mutex_);
    changed_.notify_all();
  }

private:
  void send_words() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stop_) {
      const auto job = ready(lock);
      if (job == jobs_.end()) {
        continue;
      }
      // Responses are sent without the lock.
      std::list<Job> mine;
      mine.splice(mine.end(), jobs_, job);
      lock.unlock();
      const bool more = step(mine.front());
      if (!more) {
        mine.clear();
      }
      lock.lock();
      jobs_.splice(jobs_.end(), mine);
    }
  }

  // A job that is due or cancelled. Waits if there is none, then returns end(): the caller checks
  // again.
  std::list<Job>::iterator ready(std::unique_lock<std::mutex> &lock) {
    auto first = jobs_.end();
    for (auto job = jobs_.begin(); job != jobs_.end(); ++job) {
      if (job->responder.cancelled()) {
        return job;
      }
      if (first == jobs_.end() || job->due < first->due) {
        first = job;
      }
    }
    if (first == jobs_.end()) {
      changed_.wait(lock);
    } else if (first->due > Clock::now()) {
      changed_.wait_until(lock, first->due);
      return jobs_.end();
    }
    return first;
  }

  // Sends the next response of a job; false if it was the last. Catches everything, since
  // exceptions must not leave the thread.
  bool step(Job &job) noexcept {
    try {
      if (job.responder.cancelled()) {
        model_.cancelled.add();
        throw Error::cancelled("the request was cancelled before the last word");
      }
      if (job.words.empty()) {
        job.responder.finish(); // no response at all
        return false;
      }
      const std::size_t at = job.next++;
      const bool last = job.next == job.words.size();
      trtserver::Response response = job.responder.new_response();
      response.put_strings("WORD", {1}, std::vector<std::string>{job.words[at]});
      const auto position = response.output<std::int32_t>("POSITION", {1});
      if (!position.empty()) { // empty: the output was not requested
        position[0] = static_cast<std::int32_t>(at);
      }
      model_.words.add();
      if (last) {
        response.send();
        return false;
      }
      response.send_more();
      job.due += model_.delay;
      return true;
    } catch (const Error &error) {
      job.responder.fail(error);
    } catch (const std::exception &error) {
      job.responder.fail(Error::internal(error.what()));
    }
    return false;
  }

  Splitter &model_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Job> jobs_;
  bool stop_ = false;
  // Last: it uses all of the above.
  std::thread thread_;
};

} // namespace

TRTSERVER_BACKEND(Streaming, Splitter, Worker);
