//! Unit tests of `shared_memory.rs`.

use super::*;

#[test]
fn parameters_name_a_slice_or_are_refused() {
    let int = |n| ParameterChoice::Int64Param(n);
    let text = || ParameterChoice::StringParam("r".into());
    let wrong = |key: &str, expected: &str| {
        Err(format!(
            "invalid value type for '{key}' parameter for tensor 'T', expected {expected}."
        ))
    };
    let without = |key: &str| {
        Err(format!(
            "'{key}' can not be specified without 'shared_memory_region' parameter for tensor 'T'"
        ))
    };
    let slice =
        |offset, byte_size| Ok(Some(RegionSlice { region: "r".to_owned(), offset, byte_size }));
    type Row<'a> = (&'a [(&'a str, ParameterChoice)], Result<Option<RegionSlice>, String>);
    let table: [Row<'_>; 12] = [
        (&[], Ok(None)),
        (&[("binary_data", ParameterChoice::BoolParam(true))], Ok(None)),
        (&[(REGION, text()), (BYTE_SIZE, int(8))], slice(0, 8)),
        (&[(REGION, text()), (BYTE_SIZE, int(8)), (OFFSET, int(16))], slice(16, 8)),
        (
            &[(REGION, text()), (BYTE_SIZE, int(-1)), (OFFSET, int(-2))],
            slice(u64::MAX - 1, u64::MAX),
        ),
        (&[(OFFSET, int(0))], without(OFFSET)),
        (&[(BYTE_SIZE, int(0))], without(BYTE_SIZE)),
        (
            &[(REGION, text())],
            Err("'shared_memory_byte_size' must be specified along with 'shared_memory_region' \
                 parameter for tensor 'T'"
                .to_owned()),
        ),
        (&[(REGION, int(0))], wrong(REGION, "string_param")),
        (&[(REGION, text()), (BYTE_SIZE, text())], wrong(BYTE_SIZE, "int64_param")),
        (&[(REGION, text()), (OFFSET, text())], wrong(OFFSET, "int64_param")),
        (
            &[(REGION, text()), (BYTE_SIZE, ParameterChoice::Uint64Param(8))],
            wrong(BYTE_SIZE, "int64_param"),
        ),
    ];
    for (parameters, want) in table {
        let parameters = parameters.iter().map(|(key, value)| {
            ((*key).to_owned(), InferParameter { parameter_choice: Some(value.clone()) })
        });
        let got = slice_of(parameters.collect());
        assert_eq!(got, want);
    }
}

fn slice_of(parameters: BTreeMap<String, InferParameter>) -> Result<Option<RegionSlice>, String> {
    super::parse_region_slice("T", &parameters).map_err(|e| e.message)
}
