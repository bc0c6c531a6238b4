// Plans of the fake nvinfer, a test double: 28 bytes as a real plan begins (tag, serialisation
// version, length, version of the library), then a text program, one statement a line:
//
//   compute 7.5                         the GPU it was built for
//   implicit 8                          implicit batch dimension (TensorRT 8), largest batch
//   input NAME TYPE DIMS [shape]        DIMS as 8x-1x3, or `scalar`; `shape`: a shape tensor, in host memory
//   output NAME TYPE DIMS [shape]
//   profile N NAME MIN OPT MAX          dimensions, or values of a shape tensor
//   weights BYTES                       device memory of the engine
//   scratch BYTES                       device memory of each context
//   stripped NAME                       weights that a refit must supply
//   plugin NAME                         a plugin library must have registered it
//   host-code                           version-compatible: needs setEngineHostCodeAllowed
//   shared-profiles                     several contexts may use a profile (TensorRT 8)
//   format N                            of all tensors; 0 is linear
//   OUT = identity IN | add A B | sub A B | scale IN FACTOR-OR-WEIGHTS | resize IN SHAPE | nonzero IN | shape IN
//   sleep MICROSECONDS | fail | fault   per execution
//   slow-close MICROSECONDS             how long the engine takes to be deleted
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

enum class Type : int32_t { FP32, FP16, INT8, INT32, BOOL, UINT8, FP8, BF16, INT64 };

inline uint64_t bytes_of(Type type) {
    static const uint64_t BYTES[] = {4, 2, 1, 4, 1, 1, 1, 2, 8};
    return BYTES[static_cast<int>(type)];
}

using Shape = std::vector<int64_t>;

inline int64_t elements(const Shape &shape) {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
}

struct Profile {
    Shape limits[3]; // smallest, optimal, largest: dimensions, or values of a shape tensor
    std::vector<int32_t> narrow[3];
};

struct Tensor {
    std::string name;
    Type type;
    Shape shape;
    bool input, is_shape;
    std::map<int, Profile> profiles;
};

struct Step {
    std::string op, out, in[2];
    double factor = 0;
    bool is_refitted = false; // `factor` are the stripped weights in[1]
};

struct Plan {
    int compute_major = 0, compute_minor = 0;
    int implicit_batch = 0;
    std::vector<Tensor> tensors;
    std::vector<Step> steps;
    int profiles = 1;
    uint64_t weights = 0, scratch = 0, sleep_us = 0, close_us = 0;
    std::vector<std::string> stripped, plugins;
    int format = 0;
    bool host_code = false, shared_profiles = false, fails = false, faults = false;

    Tensor *find(const char *name) {
        for (Tensor &t : tensors)
            if (name && t.name == name) return &t;
        return nullptr;
    }
};

constexpr size_t HEADER = 28;

// Dimensions between `x`, values between commas.
inline Shape numbers(const std::string &text) {
    Shape all;
    if (text == "scalar") return all;
    std::string item;
    std::istringstream in(text);
    while (std::getline(in, item, text.find(',') == std::string::npos ? 'x' : ',')) all.push_back(std::stoll(item));
    return all;
}

inline std::string parse_statement(Plan &plan, std::istringstream &line, const std::string &word) {
    static const char *const TYPES[] = {"FP32", "FP16", "INT8", "INT32", "BOOL", "UINT8", "FP8", "BF16", "INT64"};
    std::string name, a, b, c;
    char dot;
    if (word == "compute") {
        line >> plan.compute_major >> dot >> plan.compute_minor;
    } else if (word == "implicit") {
        line >> plan.implicit_batch;
    } else if (word == "input" || word == "output") {
        line >> name >> a >> b >> c;
        int type = 0;
        while (type < 9 && a != TYPES[type]) type++;
        if (type == 9) return "unknown type " + a;
        plan.tensors.push_back({name, static_cast<Type>(type), numbers(b), word == "input", c == "shape", {}});
    } else if (word == "profile") {
        int number;
        line >> number >> name >> a >> b >> c;
        Tensor *t = plan.find(name.c_str());
        if (!t) return "profile of unknown tensor " + name;
        Profile &p = t->profiles[number];
        const std::string *texts[] = {&a, &b, &c};
        for (int i = 0; i < 3; i++) {
            p.limits[i] = numbers(*texts[i]);
            p.narrow[i].assign(p.limits[i].begin(), p.limits[i].end());
        }
        if (number >= plan.profiles) plan.profiles = number + 1;
    } else if (word == "weights") {
        line >> plan.weights;
    } else if (word == "scratch") {
        line >> plan.scratch;
    } else if (word == "sleep") {
        line >> plan.sleep_us;
    } else if (word == "slow-close") {
        line >> plan.close_us;
    } else if (word == "stripped") {
        line >> name;
        plan.stripped.push_back(name);
    } else if (word == "plugin") {
        line >> name;
        plan.plugins.push_back(name);
    } else if (word == "host-code") {
        plan.host_code = true;
    } else if (word == "shared-profiles") {
        plan.shared_profiles = true;
    } else if (word == "format") {
        line >> plan.format;
    } else if (word == "fail") {
        plan.fails = true;
    } else if (word == "fault") {
        plan.faults = true;
    } else {
        Step step;
        step.out = word;
        line >> a >> step.op >> step.in[0] >> step.in[1];
        if (a != "=") return "unknown statement " + word;
        step.is_refitted = step.op == "scale" && std::count(plan.stripped.begin(), plan.stripped.end(), step.in[1]);
        if (step.op == "scale" && !step.is_refitted) step.factor = std::stod(step.in[1]);
        plan.steps.push_back(step);
    }
    return "";
}

// Returns why the plan is refused, in texts like those of the real library; empty if it is not.
inline std::string parse_plan(const void *blob, size_t size, const int version[4], Plan &plan) {
    const uint8_t *bytes = static_cast<const uint8_t *>(blob);
    uint32_t serialization = 0;
    uint64_t length = 0;
    if (size < HEADER || memcmp(bytes, "ftrt", 4)) return "Serialization assertion magicTagRead == kMAGIC_TAG failed.";
    memcpy(&serialization, bytes + 4, 4);
    memcpy(&length, bytes + 8, 8);
    if (serialization != 0) return "Serialization assertion stdVersionRead == kSERIALIZATION_VERSION failed.";
    std::string text(reinterpret_cast<const char *>(bytes + HEADER), size - HEADER), line, word;
    if (length != text.size()) return "Serialization assertion sizeRead == remaining failed.";
    std::istringstream lines(text);
    while (std::getline(lines, line)) {
        std::istringstream words(line);
        if (!(words >> word)) continue;
        std::string problem = parse_statement(plan, words, word);
        if (!problem.empty()) return problem;
    }
    // A version-compatible plan runs on later releases of its major version.
    bool same = bytes[24] == version[0] && bytes[25] == version[1] && bytes[26] == version[2];
    if (!same && !(plan.host_code && bytes[24] == version[0])) {
        std::ostringstream problem;
        problem << "The engine plan file is not compatible with this version of TensorRT, expecting library version ";
        for (int i = 0; i < 4; i++) problem << version[i] << (i < 3 ? "." : " got ");
        for (int i = 0; i < 4; i++) problem << int(bytes[24 + i]) << (i < 3 ? "." : ", please rebuild.");
        return problem.str();
    }
    return "";
}
