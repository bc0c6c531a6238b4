"""Ray Serve with trtserver: each replica owns one server process, to which it forwards bytes.

`deployment.application` builds the application, `grpc_methods.add_inference_services` names the calls
of the gRPC proxy, `autoscaling.QueuePolicy` scales on the queues of the servers.
"""
