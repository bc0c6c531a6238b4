/* What every compiled model is linked with and does not use. Test double. */

extern int nothing_of_torch;
