/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to Redis, and the batch that is on its way. */
#include "store.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/un.h>
#include <unistd.h>

#include "counters.h"
#include "numbers.h"

#define RETRY_NS 100000000u   /* between two connections */
#define ANSWER_NS 1000000000u /* for a connection, and for an answer */

static bool unix_address(const char *path, struct store_address *to)
{
	struct sockaddr_un *address = (struct sockaddr_un *)&to->address;

	if (!*path || strlen(path) >= sizeof(address->sun_path))
		return false;
	address->sun_family = AF_UNIX;
	strcpy(address->sun_path, path);
	to->length = sizeof(*address);
	return true;
}

static bool ip_address(const char *host, uint16_t port, struct store_address *to)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&to->address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&to->address;

	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		to->length = sizeof(*v4);
	} else if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		to->length = sizeof(*v6);
	}
	return to->length > 0;
}

bool store_address_read(const char *text, struct store_address *to)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN];
	size_t n = colon ? (size_t)(colon - text) : 0;
	uint32_t port;

	*to = (struct store_address){0};
	if (strncmp(text, "unix:", 5) == 0)
		return unix_address(text + 5, to);
	if (n > 2 && text[0] == '[' && colon[-1] == ']') {
		text++;
		n -= 2;
	}
	if (n == 0 || n >= sizeof(host) || !number_read32(colon + 1, 1, 65535, &port))
		return false;
	memcpy(host, text, n);
	host[n] = '\0';
	return ip_address(host, (uint16_t)port, to);
}

int store_open(struct store *s, const struct store_address *to, uint64_t lag_ns, uint64_t idle_ns)
{
	memset(s, 0, sizeof(*s));
	s->to = *to;
	s->lag_ns = lag_ns;
	s->idle_s = idle_ns / 1000000000;
	s->fd = -1;
	return getrandom(&s->writer, sizeof(s->writer), 0) == sizeof(s->writer) ? 0 : -1;
}

void store_close(struct store *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	atomic_store_explicit(&s->counts.connected, 0, memory_order_relaxed);
}

/* The same error is reported once. What Redis says is cut at its first byte that is no letter. */
static void give_up(struct store *s, uint64_t now_ns, const char *why)
{
	char text[sizeof(s->error)];
	size_t n = 0;

	while (n < sizeof(text) - 1 && why[n] >= ' ' && why[n] <= '~') {
		text[n] = why[n];
		n++;
	}
	text[n] = '\0';
	if (strcmp(text, s->error) != 0)
		fprintf(stderr, "dray-vnf: Redis: %s; trying again\n", text);
	strcpy(s->error, text);
	count(&s->counts.errors, 1);
	store_close(s);
	s->retry_ns = now_ns + RETRY_NS;
}

static void start_connection(struct store *s, uint64_t now_ns)
{
	int one = 1;

	if (now_ns < s->retry_ns)
		return;
	s->fd = socket(s->to.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd < 0) {
		give_up(s, now_ns, strerror(errno));
		return;
	}
	if (s->to.address.ss_family != AF_UNIX)
		setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	s->sent = s->received = 0;
	s->answer_by_ns = now_ns + ANSWER_NS;
	if (connect(s->fd, (struct sockaddr *)&s->to.address, s->to.length) < 0 &&
	    errno != EINPROGRESS)
		give_up(s, now_ns, strerror(errno));
}

/* True once there is a connection. */
static bool is_connected(struct store *s, uint64_t now_ns)
{
	struct pollfd p = {.fd = s->fd, .events = POLLOUT};
	int error = 0;
	socklen_t length = sizeof(error);

	if (atomic_load_explicit(&s->counts.connected, memory_order_relaxed))
		return true;
	if (poll(&p, 1, 0) < 1) {
		if (now_ns >= s->answer_by_ns)
			give_up(s, now_ns, "no connection within a second");
		return false;
	}
	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0 || error) {
		give_up(s, now_ns, strerror(error));
		return false;
	}
	atomic_store_explicit(&s->counts.connected, 1, memory_order_relaxed);
	count(&s->counts.connects, 1);
	s->answer_by_ns = now_ns + ANSWER_NS;
	return true;
}

/* Take what waits long enough, and with it what waits as well. */
static void make_batch(struct store *s, struct track *t, bool all)
{
	const struct tracked *oldest = track_oldest(t);

	if (!oldest || (!all && t->now_ns - oldest->since_ns < s->lag_ns))
		return;
	for (s->n = 0; s->n < SCRIPT_BATCH && track_oldest(t); s->n++) {
		struct tracked *one = track_take(t);

		s->part[s->n].session = one;
		s->part[s->n].packets = one->packets - one->stored_packets;
		s->part[s->n].bytes = one->bytes - one->stored_bytes;
		s->part[s->n].since_ns = one->since_ns;
	}
	s->batch++;
	script_begin(&s->request, s->n, s->writer);
	for (unsigned i = 0; i < s->n; i++)
		script_key(&s->request, &s->part[i].session->key);
	script_batch(&s->request, s->batch, s->idle_s);
	for (unsigned i = 0; i < s->n; i++)
		script_values(&s->request, s->part[i].session->id, s->part[i].packets,
			      s->part[i].bytes);
	s->sent = s->received = 0;
	s->answer_by_ns = t->now_ns + ANSWER_NS;
}

static void send_batch(struct store *s, uint64_t now_ns)
{
	while (s->sent < s->request.bytes) {
		ssize_t n = send(s->fd, s->request.text + s->sent, s->request.bytes - s->sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			give_up(s, now_ns, strerror(errno));
			return;
		}
		s->sent += (uint32_t)n;
	}
}

/* What Redis has of a session now. A new session is one whose id it took from us. */
static void settle(struct store *s, struct track *t, unsigned i, const struct script_answer *answer)
{
	struct tracked *one = s->part[i].session;
	uint64_t least = one->total + s->part[i].packets, lag = t->now_ns - s->part[i].since_ns;

	track_stored(t, one, s->part[i].packets, s->part[i].bytes);
	if (answer->id == 0) {
		count(&s->counts.refused, 1);
		return;
	}
	if (!one->stored)
		count(answer->id == one->id ? &t->counts.created : &t->counts.resumed, 1);
	else if (answer->id != one->id || answer->total < least)
		count(&s->counts.regressed, 1);
	one->stored = true;
	one->id = answer->id;
	one->total = answer->total;
	count(&s->counts.packets, s->part[i].packets);
	if (lag > atomic_load_explicit(&s->counts.lag_ns, memory_order_relaxed))
		atomic_store_explicit(&s->counts.lag_ns, lag, memory_order_relaxed);
}

static void read_answer(struct store *s, struct track *t)
{
	struct script_answer answers[SCRIPT_BATCH];
	const char *error = NULL;
	ssize_t n = recv(s->fd, s->answer + s->received, SCRIPT_IN - s->received, MSG_DONTWAIT);
	int whole;

	if (n == 0 || (n < 0 && errno != EAGAIN)) {
		give_up(s, t->now_ns, n ? strerror(errno) : "the connection has ended");
		return;
	}
	s->received += n > 0 ? (uint32_t)n : 0;
	if (!s->n && s->received) {
		give_up(s, t->now_ns, "an answer without a question");
		return;
	}
	if (!s->n)
		return;
	whole = script_parse(s->answer, s->received, s->n, answers, &error);
	if (whole < 0)
		give_up(s, t->now_ns, error);
	else if (!whole && t->now_ns >= s->answer_by_ns)
		give_up(s, t->now_ns, "no answer within a second");
	if (whole <= 0)
		return;
	for (unsigned i = 0; i < s->n; i++)
		settle(s, t, i, &answers[i]);
	s->n = 0;
	s->received = 0;
	s->error[0] = '\0';
}

void store_turn(struct store *s, struct track *t, bool all)
{
	if (!s->to.length)
		return;
	if (s->fd < 0)
		start_connection(s, t->now_ns);
	if (s->fd < 0 || !is_connected(s, t->now_ns))
		return;
	read_answer(s, t);
	if (!s->n)
		make_batch(s, t, all);
	if (s->fd >= 0 && s->n)
		send_batch(s, t->now_ns);
}

bool store_has_all(const struct store *s, const struct track *t)
{
	return !s->to.length || (!s->n && !track_oldest(t));
}
