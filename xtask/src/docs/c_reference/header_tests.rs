//! Unit tests of `header.rs`.

use super::*;

const TEXT: &str = r#"/* SPDX-License-Identifier: Apache-2.0 */
/* What it is.
 *
 * More
 * of it. */
#ifndef A_H
#define A_H
#include "b.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Version. */
#define A_VERSION 1u

/* ---- Handles ---- */

/* All of them. */

typedef struct a_error a_error; /* a failure; text with a `;` */
/* Called once. */
typedef void (*a_done)(void *user, int x);

/* A pair. */
typedef struct a_pair {
  const char *p; /* first */
  /* Two
     lines. */
  uint8_t id[16];
  /* -- part -- */
  /* Opens. */
  a_error *(*open)(a_pair *pair,
                   int32_t id);
  uint32_t pad;
} a_pair;

/* Kinds. */
enum { A_KIND_X = 1, A_KIND_Y = 2 };
enum {
  A_FLAG_ONE = 1, /* one */
  A_FLAG_TWO = 2  /* two */
};

/* Reads {a} pair. */
a_error *a_read(const a_pair *pair, size_t *n);

/* With code. */
static inline int a_is(int x) {
  if (x) { return 1; }
  return 0;
}

#ifdef __cplusplus
}
#endif
#endif
"#;

#[test]
fn declarations_have_their_comments() {
    let header = read_header(TEXT).unwrap();
    assert_eq!(header.introduction, "What it is.\n\nMore of it.");
    assert_eq!(header.items[1], Item::Section("Handles".to_owned()));
    assert_eq!(header.items[2], Item::Note("All of them.".to_owned()));
    let found: Vec<_> = header
        .declarations()
        .map(|d| (d.kind, d.name.as_str(), d.code.as_str(), d.comment.as_str()))
        .collect();
    let want = [
        (DeclarationKind::Macro, "A_VERSION", "#define A_VERSION 1u", "Version."),
        (
            DeclarationKind::Type,
            "a_error",
            "typedef struct a_error a_error",
            "a failure; text with a `;`",
        ),
        (
            DeclarationKind::Type,
            "a_done",
            "typedef void (*a_done)(void *user, int x)",
            "Called once.",
        ),
        (DeclarationKind::Struct, "a_pair", "typedef struct a_pair { } a_pair", "A pair."),
        (DeclarationKind::Enumeration, "A_KIND_", "enum { }", "Kinds."),
        (DeclarationKind::Enumeration, "A_FLAG_", "enum { }", ""),
        (
            DeclarationKind::Function,
            "a_read",
            "a_error *a_read(const a_pair *pair, size_t *n)",
            "Reads {a} pair.",
        ),
        (DeclarationKind::Function, "a_is", "static inline int a_is(int x)", "With code."),
    ];
    assert_eq!(found, want);
}

#[test]
fn members_have_their_comments() {
    let header = read_header(TEXT).unwrap();
    let members = |name: &str| -> Vec<(String, String, String)> {
        let declared = header.declarations().find(|d| d.name == name).unwrap();
        let members = declared.members.iter().cloned();
        members.map(|m| (m.name, m.code, m.comment)).collect()
    };
    let rows = |rows: &[(&str, &str, &str)]| -> Vec<(String, String, String)> {
        rows.iter().map(|(a, b, c)| ((*a).into(), (*b).into(), (*c).into())).collect()
    };
    let pair = rows(&[
        ("p", "const char *p", "first"),
        ("id", "uint8_t id[16]", "Two lines."),
        ("open", "a_error *(*open)(a_pair *pair, int32_t id)", "Opens."),
        ("pad", "uint32_t pad", ""),
    ]);
    assert_eq!(members("a_pair"), pair);
    let flags =
        rows(&[("A_FLAG_ONE", "A_FLAG_ONE = 1", "one"), ("A_FLAG_TWO", "A_FLAG_TWO = 2", "two")]);
    assert_eq!(members("A_FLAG_"), flags);
}

#[test]
fn unknown_forms_are_errors() {
    for (text, want) in [
        ("int x;\n", "a declaration of unknown form: int x"),
        ("/* open", "a comment is not closed: /* open"),
        ("typedef struct a {\n  int b;\n", "a brace is not closed: typedef struct a {"),
    ] {
        assert_eq!(read_header(text).unwrap_err(), want);
    }
}
