//! Unit tests of the reference of the C interfaces.

use super::*;

const PAGE: CPage = CPage { header: "include/a.h", title: "A: a.h", name: "a" };

#[test]
fn declarations_without_a_comment_are_found() {
    let text = "/* Top. */\n/* Handle. */\ntypedef struct a a;\nvoid a_free(a *a);\n\
                /* Pair. */\ntypedef struct a_pair {\n  int x; /* one */\n  int y;\n  uint32_t n_z;\n\
                size_t w_count;\n  uint32_t pad;\n} a_pair;\n#define A_ONE 1\nenum { A_X = 1, A_Y = 2 };\n";
    let missing = undocumented(&read_header(text).unwrap());
    assert_eq!(missing, ["a_free", "a_pair.y", "A_ONE", "A_X, A_Y"]);
}

#[test]
fn pages_link_names_and_show_signs_as_they_are() {
    let text = "/* Top. */\n\n/* ---- Part ---- */\n\n/* Frees a `b`, not <a_pair>: A_X, *out. */\nvoid a_free(a *a);\n\
                /* Kinds. */\nenum { A_X = 1, A_Y = 2 };\n/* Pair. */\ntypedef struct a_pair {\n  int x; /* a_free it */\n} a_pair;\n";
    let header = read_header(text).unwrap();
    let names = Names::collect([("a", &header)].into_iter());
    let want = "# A: a.h\n\n`#include <a.h>`\n\nTop.\n\n## Part\n\n### `a_free`\n\n```c\nvoid a_free(a *a)\n```\n\n\
                Frees a `b`, not &lt;[`a_pair`](#a_pair)>: [`A_X`](#a_x-a_y), \\*out.\n\n\n\
                ### `A_X, A_Y`\n\nKinds.\n\n- `A_X = 1`\n- `A_Y = 2`\n\n\
                ### `a_pair`\n\nPair.\n\n- `int x`: [`a_free`](#a_free) it\n\n";
    assert_eq!(page::write(&PAGE, &header, &names), want);
}
