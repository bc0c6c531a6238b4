//! Unit tests of `man_page.rs`.

use super::*;

const HELP: &str = "Serves models

Usage: trtserver --model-repository DIR [FLAGS]
       trtserver check DIR

General:
  -h, --help
          Print this help
      --config <FILE>
          Read flags from a file's table [repeatable]
          .toml only

Logging:
      --log-info [<true|false>]
          Log: information
";

#[test]
fn manual_has_the_parts_of_the_help_text() {
    let page = HelpText::parse(HELP).to_manual();
    let expected = ".SH NAME\ntrtserver \\- Serves models\n.SH SYNOPSIS\n\
        trtserver \\-\\-model\\-repository DIR [FLAGS]\n.br\ntrtserver check DIR\n.br\n\
        .SH GENERAL\n.TP\n.B \\-h, \\-\\-help\nPrint this help\n\
        .TP\n.B \\-\\-config <FILE>\nRead flags from a file's table [repeatable]\n\\&.toml only\n\
        .SH LOGGING\n.TP\n.B \\-\\-log\\-info [<true|false>]\nLog: information\n";
    assert!(page.ends_with(expected), "{page}");
}

#[test]
fn completions_name_each_flag() {
    let help = HelpText::parse(HELP);
    assert!(help.to_bash_completion().contains("-W \"--help --config --log-info\""));
    let zsh = help.to_zsh_completion();
    assert!(
        zsh.contains("'*--config[Read flags from a file'\\''s table \\[repeatable\\]]'"),
        "{zsh}"
    );
    assert!(zsh.contains("'*--log-info[Log\\: information]'"), "{zsh}");
    assert!(
        help.to_fish().contains("-l config -d 'Read flags from a file\\'s table [repeatable]'\n")
    );
}
