# Builds the backend and the library that stands for a framework: `make`. Cargo knows what has changed.
all: libtrtserver_rust_framework.so libtoy.so

libtrtserver_rust_framework.so: FORCE
	cargo build --release --target-dir target
	cp target/release/$@ $@

libtoy.so: engine.c
	$(CC) -std=c11 -O2 -shared -fPIC -o $@ engine.c

# In the same profile, so that dependencies are compiled once.
test: libtoy.so
	cargo test --release --target-dir target --quiet

clean:
	cargo clean
	rm -f libtrtserver_rust_framework.so libtoy.so

FORCE:
.PHONY: all test clean FORCE
