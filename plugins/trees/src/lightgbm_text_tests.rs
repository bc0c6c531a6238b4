//! Unit tests of `lightgbm_text.rs`.

use super::*;

const MODEL: &str = "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=2\n\
    objective=binary sigmoid:1\nfeature_names=a b c\nfeature_infos=[0:1] [0:1] 0:1\ntree_sizes=100 50\n\n\
    Tree=0\nnum_leaves=3\nnum_cat=1\nsplit_feature=0 2\nthreshold=0.5 0\ndecision_type=2 1\n\
    left_child=1 -1\nright_child=-3 -2\nleaf_value=1 2 3\ncat_boundaries=0 1\ncat_threshold=5\nis_linear=0\nshrinkage=1\n\n\n\
    Tree=1\nnum_leaves=1\nnum_cat=0\nleaf_value=1\nis_linear=0\nshrinkage=1\n\n\nend of trees\n\nparameters:\n";

#[test]
fn a_whole_model_passes() {
    assert_eq!(check_text(MODEL.as_bytes()), Ok(()));
    assert_eq!(check_text(MODEL.replace('\n', "\r\n").as_bytes()), Ok(()));
    // Releases before 2.1 wrote no sizes.
    assert_eq!(check_text(MODEL.replace("tree_sizes=100 50\n", "").as_bytes()), Ok(()));
}

#[test]
fn every_truncation_is_found() {
    let end = MODEL.find("end of trees").unwrap();
    for at in 5..end + "end of trees".len() {
        let found = check_text(&MODEL.as_bytes()[..at]).unwrap_err();
        let in_header = at < MODEL.find("label_index").unwrap() + 31;
        assert!(found.contains("truncated") || in_header, "{at}: {found}");
    }
}

#[test]
fn numbers_that_name_nothing_are_refused() {
    for (from, to, expected) in [
        ("left_child=1 -1", "left_child=0 -1", "tree 0: its 'left_child' leads from 0 to 0"),
        ("left_child=1 -1", "left_child=2 -1", "tree 0: its 'left_child' leads from 0 to 2"),
        ("left_child=1 -1", "left_child=1 -4", "tree 0: its 'left_child' leads from 1 to -4"),
        // White space at which LightGBM does not divide.
        ("left_child=1 -1", "left_child=1\x0c-1", "tree 0 lacks values of 'left_child'"),
        ("left_child=1 -1", "left_child=1", "tree 0 lacks values of 'left_child'"),
        (
            "left_child=1 -1",
            "left_child=1 -1 -1",
            "tree 0: it has 3 values of 'left_child', expected 2",
        ),
        ("split_feature=0 2", "split_feature=0 3", "tree 0: it splits feature 3 of 3"),
        ("split_feature=0 2", "split_feature=-1 2", "tree 0 lacks values of 'split_feature'"),
        ("leaf_value=1 2 3", "leaf_value=1 2 x", "tree 0 lacks values of 'leaf_value'"),
        ("threshold=0.5 0", "threshold=0.5 1", "tree 0: set 1 of 1 sets of categories"),
        ("cat_boundaries=0 1", "cat_boundaries=0 2", "tree 0 lacks values of 'cat_threshold'"),
        ("cat_boundaries=0 1", "cat_boundaries=1 0", "its sets of categories have no bounds"),
        ("num_leaves=3", "num_leaves=0", "tree 0: it has no leaves"),
        ("tree_sizes=100 50", "tree_sizes=1", "it announces 1 trees and has 2"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=3", "2 trees are not iterations of 3"),
        ("max_feature_idx=2", "max_feature_idx=x", "its header has no number 'max_feature_idx'"),
        ("num_class=1", "num_class=999999999", "numbers that no model has"),
        (
            "objective=binary sigmoid:1",
            "objective=multiclass num_class:9",
            "1 classes, its objective 9",
        ),
        (
            "is_linear=0\nshrinkage=1\n\n\nend",
            "is_linear=1\nleaf_const=1\nnum_features=1\nleaf_coeff=1\nleaf_features=7\n\n\nend",
            "tree 1: a leaf uses feature 7 of 3",
        ),
    ] {
        assert!(MODEL.contains(from), "{from}");
        let found = check_text(MODEL.replace(from, to).as_bytes()).unwrap_err();
        assert!(found.contains(expected), "{found}, expected {expected}");
    }
}
