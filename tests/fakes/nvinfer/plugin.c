/* A plugin library of the fake TensorRT, a test double: registers the plugin "Twice" when it is opened. */

void fake_nvinfer_register(const char *plugin);

__attribute__((constructor)) static void opened(void) { fake_nvinfer_register("Twice"); }
