/* TLS of the C interface: tls HTTP GRPC HTTP_MUTUAL GRPC_MUTUAL CA CERTIFICATE KEY.
 *
 * The addresses are of servers with TLS; those called mutual want a certificate of the client. */
#include <string.h>

#include "check.h"
#include "trtserver_client.h"

static trtc_error *v1_live(const trtc_settings *to) {
  trtc_v1_client *client = NULL;
  trtc_error *error = trtc_v1_client_new(to, &client);
  bool live = false;
  if (error == NULL) error = trtc_v1_live(client, 0, &live);
  trtc_v1_client_free(client);
  CHECK(error != NULL || live);
  return error;
}

static trtc_error *v2_live(const trtc_settings *to) {
  trtc_v2_client *client = NULL;
  trtc_error *error = trtc_v2_client_new(to, &client);
  bool live = false;
  if (error == NULL) error = trtc_v2_live(client, 0, &live);
  trtc_v2_client_free(client);
  CHECK(error != NULL || live);
  return error;
}

typedef trtc_error *(*call)(const trtc_settings *);

static void succeeds(call call, const trtc_settings *to, int line) {
  trtc_error *error = call(to);
  if (error == NULL) return;
  fprintf(stderr, "line %d: %s: %s\n", line, to->url, trtc_error_message(error));
  exit(1);
}

static void fails(call call, const trtc_settings *to, int32_t kind, const char *text, int line) {
  trtc_error_info info;
  trtc_error *error = call(to);
  trtc_error_get(error, &info);
  if (error == NULL || info.kind != kind || strstr(info.message, text) == NULL) {
    fprintf(stderr, "line %d: %s: kind %d, message '%s', expected kind %d and '%s'\n", line, to->url, info.kind,
            info.message == NULL ? "" : info.message, kind, text);
    exit(1);
  }
  /* A connection that fails is named. */
  CHECK(kind != TRTC_KIND_CONNECTION || strstr(info.asked, "s://127.0.0.1:") != NULL);
  trtc_error_free(error);
}

int main(int argc, char **argv) {
  CHECK(argc == 8);
  const call calls[] = {v1_live, v2_live};
  for (int32_t protocol = TRTC_HTTP; protocol <= TRTC_GRPC; protocol++) {
    for (int i = 0; i < 2; i++) {
      trtc_settings one_sided;
      memset(&one_sided, 0, sizeof(one_sided));
      one_sided.struct_size = sizeof(one_sided);
      one_sided.url = argv[1 + protocol];
      one_sided.protocol = protocol;
      trtc_settings to = one_sided;
      to.tls_ca_file = argv[5];
      succeeds(calls[i], &to, __LINE__);
      to = one_sided;
      to.tls_insecure = true;
      succeeds(calls[i], &to, __LINE__);
      /* An authority that did not sign the server's certificate. */
      to = one_sided;
      to.tls_ca_file = argv[6];
      fails(calls[i], &to, TRTC_KIND_CONNECTION, "the TLS handshake failed", __LINE__);
      /* A server that wants a certificate. */
      to.url = argv[3 + protocol];
      to.tls_ca_file = argv[5];
      fails(calls[i], &to, TRTC_KIND_CONNECTION, "", __LINE__);
      to.tls_certificate_file = argv[6];
      fails(calls[i], &to, TRTC_KIND_ARGUMENT, "a certificate and its key belong together", __LINE__);
      to.tls_key_file = argv[7];
      succeeds(calls[i], &to, __LINE__);
      to.tls_key_file = "/nowhere/client.key";
      fails(calls[i], &to, TRTC_KIND_FILE, "cannot read tls_key_file /nowhere/client.key", __LINE__);
      to = one_sided;
      to.tls_ca_file = argv[7];
      fails(calls[i], &to, TRTC_KIND_ARGUMENT, "TLS authorities: no certificate", __LINE__);
    }
  }
  CHECK(trtc_live_handles() == 0);
  printf("all checks passed\n");
  return 0;
}
