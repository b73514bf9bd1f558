/* SPDX-License-Identifier: Apache-2.0 */
/* Load on pipes, UNIX datagram sockets, and UDP sockets. */
#include "sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

#define BURST 32
#define SIZE 64

static void set_blocking_limit(int fd)
{
	/* UDP loses: nobody may wait for ever. */
	struct timeval t = {.tv_usec = 100000};

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
}

int channel_pipe(struct channel *c)
{
	int there[2], back[2];

	if (pipe2(there, O_CLOEXEC) < 0 || pipe2(back, O_CLOEXEC) < 0)
		return -errno;
	*c = (struct channel){.a_out = there[1], .b_in = there[0], .b_out = back[1], .a_in = back[0]};
	return 0;
}

int channel_unix(struct channel *c)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	set_blocking_limit(ends[0]);
	set_blocking_limit(ends[1]);
	*c = (struct channel){.a_out = ends[0], .a_in = ends[0], .b_out = ends[1], .b_in = ends[1], .datagrams = 1};
	return 0;
}

int channel_of_sockets(struct channel *c, int a, int b)
{
	if (fcntl(a, F_GETFD) < 0 || fcntl(b, F_GETFD) < 0)
		return -errno;
	set_blocking_limit(a);
	set_blocking_limit(b);
	*c = (struct channel){.a_out = a, .a_in = a, .b_out = b, .b_in = b, .datagrams = 1};
	return 0;
}

struct job {
	const struct channel *channel;
	_Atomic int stop;
	uint64_t packets;
	unsigned n;
};

struct batch {
	uint8_t bytes[BURST][SIZE];
	struct iovec parts[BURST];
	struct mmsghdr messages[BURST];
};

static void batch_init(struct batch *b)
{
	memset(b, 0, sizeof(*b));
	for (unsigned i = 0; i < BURST; i++) {
		b->parts[i] = (struct iovec){b->bytes[i], SIZE};
		b->messages[i].msg_hdr = (struct msghdr){.msg_iov = &b->parts[i], .msg_iovlen = 1};
	}
}

static void *receive(void *argument)
{
	struct job *job = argument;
	struct batch b;

	batch_init(&b);
	bench_pin(1);
	while (!atomic_load(&job->stop)) {
		if (job->channel->datagrams) {
			int n = recvmmsg(job->channel->b_in, b.messages, BURST, MSG_WAITFORONE, NULL);

			job->packets += n > 0 ? (unsigned)n : 0;
		} else {
			ssize_t n = read(job->channel->b_in, b.bytes, sizeof(b.bytes));

			job->packets += n > 0 ? (size_t)n / SIZE : 0;
		}
	}
	return NULL;
}

double channel_rate(const struct channel *c, unsigned ms)
{
	struct job job = {.channel = c};
	uint64_t start, end;
	struct batch b;
	pthread_t receiver;

	batch_init(&b);
	bench_pin(0);
	start = clock_ns();
	end = start + ms * 1000000ull;
	pthread_create(&receiver, NULL, receive, &job);
	while (clock_ns() < end) {
		if (c->datagrams)
			(void)sendmmsg(c->a_out, b.messages, BURST, 0);
		else
			(void)!write(c->a_out, b.bytes, sizeof(b.bytes));
	}
	atomic_store(&job.stop, 1);
	if (!c->datagrams) { /* the receiver may be waiting in read, or be gone and the pipe full */
		fcntl(c->a_out, F_SETFL, O_NONBLOCK);
		(void)!write(c->a_out, b.bytes, SIZE);
		fcntl(c->a_out, F_SETFL, 0);
	}
	pthread_join(receiver, NULL);
	return (double)job.packets * 1e9 / (double)(clock_ns() - start);
}

static int get(const struct channel *c, int fd, void *bytes)
{
	return (c->datagrams ? recv(fd, bytes, SIZE, 0) : read(fd, bytes, SIZE)) == SIZE;
}

static void *reflect(void *argument)
{
	struct job *job = argument;
	uint8_t bytes[SIZE];

	bench_pin(1);
	for (unsigned i = 0; i < job->n; i++) {
		(void)get(job->channel, job->channel->b_in, bytes);
		(void)!write(job->channel->b_out, bytes, SIZE);
	}
	return NULL;
}

/* What a measurement of rate left behind. */
static void empty(const struct channel *c)
{
	uint8_t bytes[BURST * SIZE];

	if (c->datagrams) {
		while (recv(c->b_in, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			;
		return;
	}
	fcntl(c->b_in, F_SETFL, O_NONBLOCK);
	while (read(c->b_in, bytes, sizeof(bytes)) > 0)
		;
	fcntl(c->b_in, F_SETFL, 0);
}

void channel_round_trips(const struct channel *c, uint32_t *ns, unsigned n)
{
	struct job job = {.channel = c, .n = n};
	uint8_t bytes[SIZE] = {0};
	pthread_t reflector;

	empty(c);
	bench_pin(0);
	pthread_create(&reflector, NULL, reflect, &job);
	for (unsigned i = 0; i < n; i++) {
		uint64_t start = clock_ticks();

		(void)!write(c->a_out, bytes, SIZE);
		(void)get(c, c->a_in, bytes);
		ns[i] = bench_ns(clock_ticks() - start);
	}
	pthread_join(reflector, NULL);
}
