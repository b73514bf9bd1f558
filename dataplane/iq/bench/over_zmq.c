/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ZeroMQ as srsRAN's radio uses it: the receiver requests each subframe, the sender replies. srsRAN's receiver also has a thread that copies
 * subframes into a ring, and the caller copies them out of it. That is left out, in favour of ZeroMQ.
 */
#include "over.h"

#include <zmq.h>

#define PATIENCE_MS 10000

struct end {
	void *context, *socket;
};

static void *zmq_end(bool sends, const char *where)
{
	struct end *e = calloc(1, sizeof(*e));
	int ms = PATIENCE_MS;

	must(e != NULL, "no memory");
	e->context = zmq_ctx_new();
	e->socket = zmq_socket(e->context, sends ? ZMQ_REP : ZMQ_REQ);
	must(zmq_setsockopt(e->socket, ZMQ_RCVTIMEO, &ms, sizeof(ms)) == 0, "zmq_setsockopt failed");
	must((sends ? zmq_bind(e->socket, where) : zmq_connect(e->socket, where)) == 0, "ZeroMQ has no connection");
	return e;
}

static void *ipc_end(bool sends, const char *where)
{
	char address[256];

	snprintf(address, sizeof(address), "ipc://%s/zmq", where);
	return zmq_end(sends, address);
}

static void *tcp_end(bool sends, const char *where)
{
	(void)where;
	return zmq_end(sends, "tcp://" NETWORK_ADDRESS ":2000");
}

static void end_send(void *end, const void *samples, size_t bytes)
{
	struct end *e = end;
	char request;

	must(zmq_recv(e->socket, &request, 1, 0) == 1, "no request in 10 s");
	must(zmq_send(e->socket, samples, bytes, 0) == (int)bytes, "zmq_send failed");
}

static void end_receive(void *end, void *samples, size_t bytes)
{
	struct end *e = end;
	char request = 0;

	must(zmq_send(e->socket, &request, 1, 0) == 1, "zmq_send failed");
	must(zmq_recv(e->socket, samples, bytes, 0) == (int)bytes, "no samples in 10 s");
}

static void end_close(void *end)
{
	struct end *e = end;

	zmq_close(e->socket);
	zmq_ctx_destroy(e->context);
	free(e);
}

const struct over over_zmq_ipc = {
	.name = "zmq-ipc",
	.open = ipc_end,
	.send = end_send,
	.receive = end_receive,
	.close = end_close,
};

const struct over over_zmq_tcp = {
	.name = "zmq-tcp",
	.network = true,
	.open = tcp_end,
	.send = end_send,
	.receive = end_receive,
	.close = end_close,
};
