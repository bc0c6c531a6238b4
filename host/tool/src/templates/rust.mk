# Builds the backend: `make`. Cargo knows what has changed.
libtrtserver_{name}.so: FORCE
	cargo build --release --target-dir target
	cp target/release/$@ $@

clean:
	cargo clean
	rm -f libtrtserver_{name}.so

FORCE:
.PHONY: clean FORCE
