# Builds the backend: `make`. CC and CFLAGS may be given.
CFLAGS ?= -O2 -Wall -Wextra

libtrtserver_{name}.so: {name}.c $(wildcard include/trtserver/*.h) exports.map
	$(CC) -std=c11 $(CFLAGS) -shared -fPIC -I include -Wl,--version-script=exports.map -o $@ {name}.c $(LDFLAGS)

clean:
	rm -f libtrtserver_{name}.so

.PHONY: clean
