//! Unit tests of the slot tables.

use super::*;
use std::collections::HashSet;

#[test]
fn methods_of_a_class_have_slots_of_their_own() {
    for table in TABLES {
        let mut taken = HashSet::new();
        for (class, method, slot) in table.methods() {
            let newest = Version::new(table.major, 99, 0);
            let Some(slot) = slot.slot(newest) else { continue };
            assert!(taken.insert((class, slot)), "{}: {class}.{method} shares {slot}", table.major);
        }
    }
}

/// Pointer-to-member values of the headers of 8.6.1, 10.16 and 11.4.
#[test]
fn slots_agree_with_compiled_headers() {
    let slots = |version: Version| {
        let table = slot_table(version.major).expect("a table");
        let (engine, context) = (&table.engine, &table.context);
        [
            table.runtime.deserialize_cuda_engine,
            engine.get_nb_io_tensors,
            engine.get_io_tensor_name,
            engine.get_tensor_shape,
            engine.get_tensor_data_type,
            engine.get_tensor_io_mode,
            engine.get_nb_optimization_profiles,
            engine.get_profile_shape,
            context.set_input_shape,
            context.set_tensor_address,
            context.set_optimization_profile_async,
            context.enqueue_v3,
            table.logger.log,
        ]
        .map(|method| method.slot(version))
    };
    let compiled = |numbers: [usize; 13]| numbers.map(Some);
    assert_eq!(
        slots(Version::new(8, 6, 1)),
        compiled([2, 45, 46, 34, 35, 38, 22, 44, 29, 32, 25, 44, 0])
    );
    assert_eq!(
        slots(Version::new(10, 16, 1)),
        compiled([3, 30, 31, 19, 20, 23, 10, 29, 21, 24, 17, 37, 0])
    );
    assert_eq!(
        slots(Version::new(11, 4, 0)),
        compiled([3, 26, 27, 15, 16, 19, 8, 25, 20, 23, 16, 36, 4])
    );
}

#[test]
fn method_of_a_later_release_is_absent_before_it() {
    let host_code = slot_table(8).expect("a table").runtime.set_engine_host_code_allowed;
    assert_eq!(host_code.slot(Version::new(8, 5, 3)), None);
    assert_eq!(host_code.slot(Version::new(8, 6, 0)), Some(20));
}

#[test]
fn version_number_has_one_or_two_digits_of_minor() {
    assert_eq!(Version::from_number(8601), Some(Version::new(8, 6, 1)));
    assert_eq!(Version::from_number(101_601), Some(Version::new(10, 16, 1)));
    assert_eq!(Version::from_number(110_400), Some(Version::new(11, 4, 0)));
    assert_eq!(Version::from_number(-1), None);
    assert_eq!(Version::from_number(86), None);
    assert_eq!(Version::from_number(54_321), None);
}
