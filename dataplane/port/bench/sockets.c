/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes, UNIX datagram sockets, and UDP over veth. */
#include "sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
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

static int udp_socket(const char *from, const char *to)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(4000)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

	inet_pton(AF_INET, from, &address.sin_addr);
	ret = bind(fd, (struct sockaddr *)&address, sizeof(address));
	inet_pton(AF_INET, to, &address.sin_addr);
	if (ret < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		close(fd);
		return -1;
	}
	set_blocking_limit(fd);
	return fd;
}

/* A process that does nothing but keep a new network namespace, for `ip` to name it by. */
static pid_t keep_namespace(int *self)
{
	int ready[2];
	char path[32], c;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNET) < 0 || write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (pid > 0 && read(ready[0], &c, 1) == 1) {
		snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
		*self = open(path, O_RDONLY | O_CLOEXEC);
	}
	close(ready[0]);
	return pid;
}

/* In the two namespaces: the veth pair, its addresses, and a socket at each end. */
static int join_namespaces(struct channel *c, const int net[2], pid_t second)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "ip link add dray-a type veth peer name dray-b netns %d && ip addr add 192.0.2.1/30 dev dray-a && "
		 "ip link set dray-a up", (int)second);
	if (setns(net[0], CLONE_NEWNET) < 0 || system(command) != 0)
		return -1;
	if (setns(net[1], CLONE_NEWNET) < 0 || system("ip addr add 192.0.2.2/30 dev dray-b && ip link set dray-b up") != 0)
		return -1;
	c->b_in = c->b_out = udp_socket("192.0.2.2", "192.0.2.1");
	if (setns(net[0], CLONE_NEWNET) < 0)
		return -1;
	c->a_in = c->a_out = udp_socket("192.0.2.1", "192.0.2.2");
	return c->a_in < 0 || c->b_in < 0 ? -1 : 0;
}

int channel_udp(struct channel *c, const char **why)
{
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), net[2] = {-1, -1}, ret = -1;
	pid_t keepers[2];

	*c = (struct channel){.a_in = -1, .a_out = -1, .b_in = -1, .b_out = -1, .datagrams = 1};
	for (unsigned i = 0; i < 2; i++)
		keepers[i] = keep_namespace(&net[i]);
	if (net[0] >= 0 && net[1] >= 0)
		ret = join_namespaces(c, net, keepers[1]);
	*why = ret ? "needs root, iproute2 and veth" : NULL;
	if (home < 0 || setns(home, CLONE_NEWNET) < 0)
		*why = ret ? *why : "the way back to the first network namespace is barred";
	/* The sockets keep their namespaces. */
	for (unsigned i = 0; i < 2; i++) {
		if (keepers[i] > 0) {
			kill(keepers[i], SIGKILL);
			waitpid(keepers[i], NULL, 0);
		}
		if (net[i] >= 0)
			close(net[i]);
	}
	if (home >= 0)
		close(home);
	return ret;
}

void channel_close(struct channel *c)
{
	if (c->a_out != c->a_in)
		close(c->a_out);
	if (c->b_out != c->b_in)
		close(c->b_out);
	close(c->a_in);
	close(c->b_in);
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
