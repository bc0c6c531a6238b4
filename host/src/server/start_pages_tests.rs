//! Which mappings are released.

use super::code;

const MAPS: &str = "\
55d0c8a00000-55d0c8b00000 r--p 00000000 fe:00 42 /opt/trt server/bin/trtserver
55d0c8b00000-55d0c9700000 r-xp 00100000 fe:00 42 /opt/trt server/bin/trtserver
55d0c9700000-55d0c9800000 rw-p 00d00000 fe:00 42 /opt/trt server/bin/trtserver
7f0000000000-7f0000001000 rw-p 00000000 00:00 0 
7f1000000000-7f1000100000 r-xp 00000000 fe:00 43 /usr/lib/libc.so.6
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0 [vdso]
";

#[test]
fn only_code_of_the_program_is_released() {
    let found = code(MAPS, "/opt/trt server/bin/trtserver");
    assert_eq!(found, vec![0x55d0_c8b0_0000..0x55d0_c970_0000]);
    assert!(code(MAPS, "/usr/bin/other").is_empty());
    assert!(code("", "").is_empty());
}
