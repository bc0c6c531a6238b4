/* The legacy custom backend interface, generation C (v1.0 to v1.15, version 1): initialised with a structure. */
#ifndef CUSTOM_C_H
#define CUSTOM_C_H

#include "custom_calls_v1.h"
#include "custom_start.h"

#endif
