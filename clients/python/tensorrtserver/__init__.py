# SPDX-License-Identifier: Apache-2.0
"""Client for the v1 protocol of TRTIS, with the interface of PyPI's `tensorrtserver` 1.11.0.

`tensorrtserver.api` has the contexts, `tensorrtserver.shared_memory` and `tensorrtserver.cuda_shared_memory` the regions.
"""
