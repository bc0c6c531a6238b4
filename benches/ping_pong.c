/* Requests per second of a client that does nothing: the same request over a blocking socket, one at a time.
 *
 *     ping_pong PORT http|grpc REQUEST SECONDS [PREFACE]
 *
 * REQUEST is a file. Over HTTP a response is read to its Content-Length; over gRPC the stream id of each frame of the request is
 * set, and frames are read to the end of the stream. PREFACE is sent first. Prints requests per second and CPU seconds per
 * request. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static unsigned char request[65536], response[1 << 20];

static void check(int ok, const char *what)
{
  if (!ok) {
    perror(what);
    exit(1);
  }
}

static size_t read_file(const char *path, unsigned char *into, size_t capacity)
{
  FILE *file = fopen(path, "rb");
  check(file != NULL, path);
  size_t size = fread(into, 1, capacity, file);
  fclose(file);
  return size;
}

static size_t frame_size(const unsigned char *frame) { return 9 + ((size_t)frame[0] << 16 | frame[1] << 8 | frame[2]); }

/* The size of the complete HTTP response at the start of `response`, or 0. */
static size_t http_end(size_t size)
{
  response[size] = 0;
  char *head = (char *)response, *end = strstr(head, "\r\n\r\n");
  if (end == NULL)
    return 0;
  char *length = strcasestr(head, "\ncontent-length:");
  check(length != NULL && strncmp(head, "HTTP/1.1 200", 12) == 0, "response");
  size_t whole = (size_t)(end + 4 - head) + strtoul(length + 16, NULL, 10);
  return size >= whole ? whole : 0;
}

/* The size of the frames up to one that ends a stream, or 0. */
static size_t grpc_end(size_t size)
{
  for (size_t at = 0; at + 9 <= size && at + frame_size(response + at) <= size;) {
    const unsigned char *frame = response + at;
    at += frame_size(frame);
    if (frame[3] <= 1 && (frame[4] & 1) != 0)
      return at;
  }
  return 0;
}

static double now(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double cpu(void)
{
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int main(int count, char **arguments)
{
  check(count >= 5, "arguments");
  int grpc = strcmp(arguments[2], "grpc") == 0, one = 1;
  size_t size = read_file(arguments[3], request, sizeof request), have = 0;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(arguments[1]))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int server = socket(AF_INET, SOCK_STREAM, 0);
  check(connect(server, (struct sockaddr *)&address, sizeof address) == 0, "connect");
  setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (count > 5) {
    size_t preface = read_file(arguments[5], response, sizeof response);
    check(send(server, response, preface, 0) == (ssize_t)preface, "send");
  }
  double limit = atof(arguments[4]), start = now(), before = cpu(), end = start;
  unsigned long requests = 0;
  for (unsigned stream = 1; end < start + limit; stream += 2, requests++) {
    for (size_t at = 0; grpc && at < size; at += frame_size(request + at)) {
      unsigned id = htonl(stream);
      memcpy(request + at + 5, &id, 4);
    }
    check(send(server, request, size, 0) == (ssize_t)size, "send");
    size_t whole = 0;
    while (whole == 0) {
      ssize_t received = recv(server, response + have, sizeof response - have - 1, 0);
      check(received > 0, "recv");
      have += (size_t)received;
      whole = grpc ? grpc_end(have) : http_end(have);
    }
    have -= whole;
    memmove(response, response + whole, have);
    end = now();
  }
  printf("%f %g\n", (double)requests / (end - start), (cpu() - before) / (double)requests);
  return 0;
}
