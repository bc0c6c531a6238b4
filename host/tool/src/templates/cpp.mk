# Builds the backend: `make`. CXX and CXXFLAGS may be given.
CXXFLAGS ?= -O2 -Wall -Wextra

libtrtserver_{name}.so: {name}.cpp $(wildcard include/trtserver/*.h include/trtserver/*.hpp include/trtserver/cpp/*.hpp) exports.map
	$(CXX) -std=c++17 $(CXXFLAGS) -shared -fPIC -pthread -I include -Wl,--version-script=exports.map -o $@ {name}.cpp $(LDFLAGS)

clean:
	rm -f libtrtserver_{name}.so

.PHONY: clean
