// Computation of the fake nvinfer, a test double: runs on a stream of the fake driver, in memory
// that only the driver finds.
#pragma once
#include "library.h"
#include "plan.h"

enum class Operation { REPEAT, ADD, SUBTRACT, SCALE, INDICES };

struct TaskStep {
    Operation operation;
    Type type;
    uint64_t a, b, out;
    uint64_t count, count_in; // elements of the output and of the first input
    double factor;
    std::vector<int64_t> indices;
};

struct Task {
    std::vector<TaskStep> steps;
    uint64_t sleep_us = 0;
    bool faults = false;
};

template <typename T> void compute(const TaskStep &step, const void *a, const void *b, void *out) {
    const T *left = static_cast<const T *>(a), *right = static_cast<const T *>(b);
    T *to = static_cast<T *>(out);
    for (uint64_t i = 0; i < step.count; i++) {
        switch (step.operation) {
        case Operation::REPEAT: to[i] = left[i % step.count_in]; break;
        case Operation::ADD: to[i] = T(left[i] + right[i]); break;
        case Operation::SUBTRACT: to[i] = T(left[i] - right[i]); break;
        case Operation::SCALE: to[i] = T(double(left[i]) * step.factor); break;
        case Operation::INDICES: to[i] = T(step.indices[i]); break;
        }
    }
}

// Called by the driver.
static int run_task(void *data, Resolve resolve) {
    const Task *task = static_cast<Task *>(data);
    for (const TaskStep &step : task->steps) {
        if (!step.count) continue;
        uint64_t size = bytes_of(step.type), bytes = step.count * size;
        void *out = resolve(step.out, bytes);
        void *a = step.a ? resolve(step.a, step.count_in * size) : nullptr, *b = step.b ? resolve(step.b, bytes) : nullptr;
        if (!out || (step.a && !a) || (step.b && !b)) return 1;
        switch (step.type) {
        case Type::FP32: compute<float>(step, a, b, out); break;
        case Type::INT32: compute<int32_t>(step, a, b, out); break;
        case Type::INT64: compute<int64_t>(step, a, b, out); break;
        case Type::FP16:
        case Type::BF16: compute<uint16_t>(step, a, b, out); break;
        case Type::INT8: compute<int8_t>(step, a, b, out); break;
        default: compute<uint8_t>(step, a, b, out);
        }
    }
    return task->faults;
}

static void drop_task(void *data) { delete static_cast<Task *>(data); }
