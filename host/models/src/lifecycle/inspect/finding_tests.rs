//! Unit tests of `finding.rs`.

use super::*;
use trtserver_proto::text::parse_with_places;
use trtserver_proto::v2::ModelConfig;

#[test]
fn findings_point_to_the_field_that_the_message_names() {
    let text =
        "name: 'm'\nmax_batch_size: 1\ninput { name: 'a' dims: 1 }\ninput { name: 'b' dims: 0 }\n";
    let (_, places) = parse_with_places::<ModelConfig>(text).unwrap();
    let path = Path::new("/r/m/config.pbtxt");
    let at = FindingLocator::new(path, Some(&places));
    for (part, message, position) in [
        (
            ConfigPart::Field("input"),
            "model input 'b' dimension must be integer >= 1 for m",
            Some((4, 9)),
        ),
        (ConfigPart::Field(""), "'max_batch_size' must be non-negative value for m", Some((2, 1))),
        (ConfigPart::Field(""), "must specify 'platform' or 'backend' for 'm'", None),
        (ConfigPart::Field("output"), "model output must specify 'name' for m", None),
        (ConfigPart::Unknown, "model input 'b'", None),
    ] {
        let finding = at.refused(message, part);
        assert_eq!((finding.position, finding.message.as_str()), (position, message));
    }
    let finding = at.refused("/r/m/config.pbtxt:3:7: no field", ConfigPart::Position(3, 7));
    assert_eq!((finding.position, finding.message.as_str()), (Some((3, 7)), "no field"));
    let warning =
        ConfigWarning { field: "max_batch_size".into(), message: "'max_batch_size'".into() };
    assert_eq!(at.warning(&warning).position, Some((2, 1)));
}
