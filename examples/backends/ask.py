# SPDX-License-Identifier: Apache-2.0
"""Sends texts over one gRPC stream and prints each response when it arrives: ask.py HOST:PORT TEXT…

Needs tritonclient[grpc] and numpy.
"""

import queue
import sys

import numpy as np
import tritonclient.grpc as grpc

url, *texts = sys.argv[1:]
responses = queue.Queue()
with grpc.InferenceServerClient(url) as client:
    client.start_stream(lambda result, error: responses.put((result, error)))
    for number, text in enumerate(texts):
        tensor = grpc.InferInput("TEXT", [1], "BYTES")
        tensor.set_data_from_numpy(np.array([text.encode()], object))
        # With the parameter, a text without words gets an empty final response.
        client.async_stream_infer("words", [tensor], request_id=str(number), enable_empty_final_response=True)
        final = False
        while not final:
            result, error = responses.get(timeout=30)
            if error:
                print(f"text {number}: {error}")
                break
            response = result.get_response()
            final = response.parameters["triton_final_response"].bool_param
            if response.outputs:
                word, position = result.as_numpy("WORD")[0].decode(), result.as_numpy("POSITION")[0]
                print(f"text {number}, word {position}: {word}{' (final)' if final else ''}")
            else:
                print(f"text {number}: no words")
    client.stop_stream()
