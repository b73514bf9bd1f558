/* SPDX-License-Identifier: Apache-2.0 */
/* The rig of the tests. */
#include "rig.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define PATIENCE 60 /* s; then a process is stuck */

bool rig_udp;
static int to_other, from_other;
static int own_end;

void test_failed(void)
{
	_exit(1);
}

static _Noreturn void skip(const char *reason)
{
	fprintf(stderr, "skipped: %s\n", reason);
	exit(77);
}

void rig_meet(void)
{
	char byte = 0;

	CHECK_EQ(write(to_other, "m", 1), 1);
	CHECK_EQ(read(from_other, &byte, 1), 1);
}

struct sockaddr_in rig_ip4(int link, int end, int port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(0x0a090000u | (unsigned)link << 8 | (unsigned)end)};
}

struct sockaddr_in6 rig_ip6(int end, int port)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};

	CHECK_EQ(inet_pton(AF_INET6, end == 1 ? "fd09:1::1" : "fd09:1::2", &at.sin6_addr), 1);
	return at;
}

int rig_listen(int style, int port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, style, IPPROTO_SCTP);

	CHECK(fd >= 0);
	CHECK_EQ(bind(fd, ADDRESS(at), sizeof(at)), 0);
	CHECK_EQ(listen(fd, 64), 0);
	return fd;
}

int rig_connect(int port)
{
	struct sockaddr_in to = rig_ip4(1, 1, port);
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);

	CHECK(fd >= 0);
	CHECK_EQ(connect(fd, ADDRESS(to), sizeof(to)), 0);
	return fd;
}

void rig_subscribe(int fd, bool association)
{
	struct sctp_event_subscribe events = {.sctp_data_io_event = 1,
					      .sctp_association_event = association,
					      .sctp_shutdown_event = association};

	CHECK_EQ(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENTS, &events, sizeof(events)), 0);
}

void rig_fill(char *data, size_t size, unsigned seed)
{
	for (size_t i = 0; i < size; i++)
		data[i] = (char)(seed * 31 + i * 7 + i / 251);
}

bool rig_is(const char *data, size_t size, unsigned seed)
{
	for (size_t i = 0; i < size; i++) {
		if (data[i] != (char)(seed * 31 + i * 7 + i / 251))
			return false;
	}
	return true;
}

ssize_t rig_receive(int fd, char *data, size_t size, struct sctp_sndrcvinfo *info, int *flags)
{
	size_t have = 0;

	do {
		ssize_t n;

		*flags = 0; /* sctp_recvmsg reads it too */
		n = sctp_recvmsg(fd, data + have, size - have, NULL, NULL, info, flags);

		if (n <= 0)
			return n;
		have += (size_t)n;
	} while (!(*flags & MSG_EOR) && have < size);
	return (ssize_t)have;
}

__attribute__((format(printf, 1, 2))) static void shell(const char *format, ...)
{
	char line[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	CHECK_EQ(system(line), 0);
}

static void addresses(int end)
{
	shell("ip link set lo up");
	for (int link = 1; link <= 2; link++) {
		shell("ip addr add 10.9.%d.%d/24 dev l%d", link, end, link);
		shell("ip link set l%d up", link);
	}
	shell("ip addr add fd09:1::%d/64 dev l1 nodad", end);
}

static void enter_namespace(void)
{
	if (unshare(CLONE_NEWNET) < 0)
		skip("no network namespace: run as root");
}

/* A packet of the other side shows that both interfaces are up. */
static void until_linked(void)
{
	shell("for i in 1 2 3 4 5 6 7 8 9 10; do ping -q -c1 -W1 10.9.1.1 >/dev/null && exit 0; "
	      "done; exit 1");
}

static pid_t start_server(void (*server)(void))
{
	int down[2], up[2];
	pid_t child;

	CHECK_EQ(pipe(down), 0);
	CHECK_EQ(pipe(up), 0);
	child = fork();
	CHECK(child >= 0);
	if (child > 0) {
		to_other = down[1];
		from_other = up[0];
		close(down[0]);
		close(up[1]);
		return child;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(PATIENCE);
	to_other = up[1];
	from_other = down[0];
	close(up[0]);
	close(down[1]);
	own_end = 1;
	enter_namespace();
	rig_meet(); /* the links come */
	rig_meet();
	addresses(1);
	rig_meet();
	server();
	exit(0);
}

int rig_main(int argc, char **argv, void (*server)(void), void (*client)(void))
{
	pid_t child;
	int status;

	CHECK(argc == 2 && "usage: test ip|udp");
	rig_udp = strcmp(argv[1], "udp") == 0;
	CHECK(rig_udp ? setenv("DRAY_SCTP_UDP", "9899", 1) == 0 : unsetenv("DRAY_SCTP_UDP") == 0);
	unsetenv("LD_PRELOAD"); /* of what shell() runs */
	enter_namespace();
	alarm(PATIENCE);
	signal(SIGPIPE, SIG_IGN);
	child = start_server(server);
	own_end = 2;
	rig_meet();
	for (int link = 1; link <= 2; link++)
		shell("ip link add l%d type veth peer name l%d netns %d", link, link, (int)child);
	rig_meet();
	addresses(2);
	rig_meet();
	until_linked();
	client();
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
	return 0;
}
