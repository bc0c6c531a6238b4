"""The models of tests/wire/frameworks/pytorch_safety.rs, for the clients of both generations."""

# Inputs and outputs by model.
NAMES = {
    "numbered": (("INPUT__0", "INPUT__1"), ("OUTPUT__0", "OUTPUT__1")),
    "completed": (("ARGS[0]", "KWARGS[bias]"), ("RESULT[total]", "RESULT[turned]")),
}
