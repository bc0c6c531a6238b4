// Virtual-table slots of TensorRT 8.6, 10 and 11 for the fake nvinfer, a test double.
//
// Counted from the order in which the Apache-2.0 releases declare the methods; slots 0 and 1 are
// the destructors. Not shared with plugins/tensorrt, so that a wrong number on either side fails a
// test.
#pragma once

constexpr int slot_of_major(int in8, int in10, int in11) { return MAJOR == 8 ? in8 : MAJOR == 10 ? in10 : in11; }

// -1: the release has no such method, or no test needs it.
#define SLOT(name, in8, in10, in11) constexpr int name = slot_of_major(in8, in10, in11);

namespace runtime_slot {
SLOT(deserialize, 2, 3, 3)
SLOT(set_allocator, 6, 8, 7)
SLOT(set_error_recorder, 7, 9, 8)
SLOT(get_error_recorder, 8, 10, 9)
SLOT(get_logger, 9, 11, 10)
SLOT(set_max_threads, 10, 12, 11)
SLOT(registry, 17, 18, 17)
SLOT(set_host_code_allowed, 20, 21, 20)
SLOT(get_host_code_allowed, 21, 22, 21)
} // namespace runtime_slot

namespace engine_slot {
SLOT(nb_bindings, 2, -1, -1)
SLOT(binding_index, 3, -1, -1)
SLOT(binding_name, 4, -1, -1)
SLOT(binding_is_input, 5, -1, -1)
SLOT(binding_dimensions, 6, -1, -1)
SLOT(binding_type, 7, -1, -1)
SLOT(max_batch_size, 8, -1, -1)
SLOT(nb_layers, 9, 3, 3)
SLOT(create_context, 11, 5, 5)
SLOT(create_context_without_memory, 13, 6, -1)
SLOT(device_memory_size, 14, 7, -1)
SLOT(is_refittable, 15, 8, 6)
SLOT(name, 21, 9, 7)
SLOT(nb_profiles, 22, 10, 8)
SLOT(profile_shape_values, 24, -1, -1)
SLOT(profile_tensor_values, -1, 11, -1)
SLOT(is_shape_binding, 25, -1, -1)
SLOT(is_execution_binding, 26, -1, -1)
SLOT(set_error_recorder, 28, 13, 10)
SLOT(has_implicit_batch, 30, 15, -1)
SLOT(tensor_shape, 34, 19, 15)
SLOT(tensor_type, 35, 20, 16)
SLOT(tensor_location, 36, 21, 17)
SLOT(is_shape_inference_io, 37, 22, 18)
SLOT(io_mode, 38, 23, 19)
SLOT(bytes_per_component, 39, 24, 20)
SLOT(components_per_element, 40, 25, 21)
SLOT(format, 41, 26, 22)
SLOT(format_description, 42, 27, 23)
SLOT(vectorized_dim, 43, 28, 24)
SLOT(profile_shape, 44, 29, 25)
SLOT(nb_io_tensors, 45, 30, 26)
SLOT(io_tensor_name, 46, 31, 27)
SLOT(nb_aux_streams, -1, 33, 29)
SLOT(format_of_profile, -1, 36, 32)
SLOT(device_memory_size_v2, -1, 52, 44)
SLOT(profile_tensor_values_v2, -1, -1, 46)
} // namespace engine_slot

namespace context_slot {
SLOT(enqueue, 3, -1, -1)
SLOT(get_engine, 8, 7, 7)
SLOT(set_name, 9, 8, 8)
SLOT(set_device_memory, 11, 10, 10)
SLOT(profile, 14, 11, 11)
SLOT(all_dimensions_specified, 19, 12, 12)
SLOT(all_shapes_specified, 20, 13, -1)
SLOT(set_error_recorder, 21, 14, 13)
SLOT(set_profile, 25, 17, 16)
SLOT(set_input_shape, 29, 21, 20)
SLOT(tensor_shape, 30, 22, 21)
SLOT(set_tensor_address, 32, 24, 23)
SLOT(tensor_address, 33, 25, 24)
SLOT(set_input_address, 34, 26, 25)
SLOT(set_output_address, -1, 27, 26)
SLOT(infer_shapes, 35, 28, 27)
SLOT(set_input_consumed_event, 36, 29, 28)
SLOT(output_address, 38, 31, 30)
SLOT(set_output_allocator, 39, 32, 31)
SLOT(output_allocator, 40, 33, 32)
SLOT(max_output_size, 41, 34, 33)
SLOT(set_temporary_allocator, 42, 35, 34)
SLOT(enqueue_v3, 44, 37, 36)
SLOT(set_device_memory_v2, -1, 49, 48)
} // namespace context_slot

namespace refitter_slot {
SLOT(refit, 3, 4, 4)
SLOT(set_named_weights, 12, 13, 9)
SLOT(missing_weights, 13, 14, 10)
SLOT(all_weights, 14, 15, 11)
} // namespace refitter_slot

// Interfaces that the caller implements.
namespace logger_slot {
SLOT(log, 0, 0, 4)
}
namespace allocator_slot {
SLOT(info, -1, 1, 1)
SLOT(allocate, 0, 4, 4)
SLOT(deallocate, 5, 6, 6)
SLOT(allocate_async, -1, 7, 7)
SLOT(deallocate_async, -1, 8, 8)
} // namespace allocator_slot
namespace output_slot {
SLOT(version, 0, -1, -1)
SLOT(info, -1, 1, 1)
SLOT(reallocate, 1, 4, 4)
SLOT(reallocate_async, -1, 5, 5)
SLOT(notify_shape, 2, 6, 6)
} // namespace output_slot
