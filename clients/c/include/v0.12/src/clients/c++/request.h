// request.h at its path in the sources of TRTIS 0.12.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "../../../request.h"
