/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of DPDK, with plain pages and without any capability. */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support.h"

#define SANITIZER 99 /* exit status */
#define EAL "--no-huge --no-shconf --no-pci --no-telemetry -m 48 "

static char directory[] = "/tmp/draygen-dpdk-XXXXXX";
static pid_t testpmd;

static void clean_up(void)
{
	char command[64];

	if (testpmd > 0)
		kill(testpmd, SIGKILL);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	if (system(command) != 0)
		fprintf(stderr, "%s is left behind\n", directory);
}

/* root gets its capabilities back with exec, unless it is told not to. */
static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};

	if (geteuid() == 0)
		CHECK(prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED) == 0);
	CHECK(syscall(SYS_capset, &header, none) == 0);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
}

static void has_no_capability(pid_t pid)
{
	char path[32], line[128];
	bool seen = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, "CapEff:", 7) == 0)
			seen = strtoull(line + 7, NULL, 16) == 0;
	fclose(f);
	CHECK(seen);
}

/* EAL's arguments with a device whose socket is in this test's directory. */
static const char *eal(char text[512], const char *format)
{
	char devices[400];

	snprintf(devices, sizeof(devices), format, directory, directory);
	snprintf(text, 512, "%s%s", EAL, devices);
	return text;
}

static void null(void)
{
	struct child c = START("send", "--port", "dpdk:net_null0", "--eal", EAL "--vdev net_null0",
			       "--packets", "100000", "--rate", "max", "--strict");
	char *r = child_result(&c, 0);

	CHECK_EQ(json_number(r, "sent"), 100000);
	CHECK_EQ(json_number(r, "cpus.polling_threads"), 1);
	CHECK(strstr(r, "\"kind\":\"net_null\""));
	free(r);
	/* Its packets are none of draygen's. A number is a name too, and EAL's arguments may
	 * come from a program that starts it. */
	setenv("DRAY_EAL", EAL "--vdev net_null0", 1);
	c = START("sink", "--port", "dpdk:0", "--interval", "20ms");
	unsetenv("DRAY_EAL");
	has_no_capability(c.pid);
	child_until(&c, "foreign");
	kill(c.pid, SIGTERM);
	r = child_result(&c, 0);
	CHECK(json_number(r, "foreign") > 0);
	CHECK_EQ(json_number(r, "received"), 0);
	free(r);
}

static int first_cpu(void)
{
	cpu_set_t allowed;
	int cpu = 0;

	CHECK(sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
	while (!CPU_ISSET(cpu, &allowed))
		cpu++;
	return cpu;
}

/*
 * A device that gives back what is sent on it; of both families, every byte looked at. It has as
 * many queues as EAL has lcores.
 */
static void ring(const char *size, const char *to, const char *from, const char *encap)
{
	char arguments[256];
	struct child c;
	char *r;

	snprintf(arguments, sizeof(arguments), EAL "--vdev net_ring0 --lcores 0@%d,1@%d",
		 first_cpu(), first_cpu());
	c = START("loop", "--port", "dpdk:net_ring0", "--to-port", "dpdk:net_ring0", "--eal",
		  arguments, "--packets", "50000", "--rate", "max", "--check", "--strict", "--size",
		  size, "--flows", "8", "--queues", "2", "--to", to, "--from", from,
		  encap ? "--encap" : NULL, encap);
	r = child_result(&c, 0);

	CHECK_EQ(json_number(r, "sink.received"), 50000);
	CHECK_EQ(json_number(r, "sink.received_bytes"), json_number(r, "sender.sent_bytes"));
	CHECK_EQ(json_number(r, "sink.foreign"), 0);
	free(r);
}

#define SERVER "--vdev net_memif0,role=server,socket=%s/memif,socket-abstract=no"
#define CLIENT                                                                                     \
	"--single-file-segments --vdev "                                                           \
	"net_memif0,role=client,zero-copy=yes,socket=%s/memif,socket-abstract=no"

/*
 * Two processes; whichever end is the server, the sink is started first. All packets fit into a
 * ring: a busy machine may keep either end from running.
 */
static void memif(const char *to_format, const char *from_format)
{
	char to[512], from[512];
	struct child sink = START("sink", "--port", "dpdk:net_memif0", "--eal", eal(to, to_format),
				  "--once", "--strict", "--reflect", "--mtu", "1800"),
		     ping;
	char *r;

	ping = START("ping", "--port", "dpdk:net_memif0", "--eal", eal(from, from_format),
		     "--packets", "900", "--rate", "20kpps", "--catch-up", "60s", "--timeout",
		     "20s", "--strict", "--size", "1814", "--mtu", "1800", "--check");
	has_no_capability(ping.pid);
	r = child_result(&ping, 0);
	CHECK_EQ(json_number(r, "received"), 900);
	CHECK_EQ(json_number(r, "forward.n"), 900);
	free(r);
	free(child_result(&sink, 0));
}

/* Both ends in one process, both ways at once. */
static void memif_loop(void)
{
	char text[512];
	struct child c = START(
		"loop", "--port", "dpdk:net_memif0", "--to-port", "dpdk:net_memif1", "--eal",
		eal(text, "--vdev net_memif0,role=server,socket=%s/loop,socket-abstract=no --vdev "
			  "net_memif1,role=client,socket=%s/loop,socket-abstract=no"),
		"--both", "--packets", "20000", "--rate", "max", "--strict", "--warmup", "64");
	char *r = child_result(&c, 0);

	CHECK_EQ(json_number(strstr(r, "\"forward\""), "sink.received"), 20000);
	CHECK_EQ(json_number(strstr(r, "\"backward\""), "sink.received"), 20000);
	free(r);
}

/* AddressSanitizer takes the signal itself, and ends the program so: dataplane/test.sh. */
static bool crashed(int status)
{
	return WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS
				   : WEXITSTATUS(status) == SANITIZER;
}

/*
 * The peer is killed in the middle: the driver crashes, or the program says that nobody is there.
 * It never waits for ever.
 */
static void memif_peer_dies(void)
{
	char to[512], from[512];
	struct child sink = START("sink", "--port", "dpdk:net_memif0", "--eal", eal(to, SERVER)),
		     sender;
	int status;

	/* The default --peer-timeout: it bounds EAL's start as well. */
	sender = START("send", "--port", "dpdk:net_memif0", "--eal", eal(from, CLIENT), "--rate",
		       "max");
	usleep(100000);
	kill(sink.pid, SIGKILL);
	CHECK(waitpid(sink.pid, NULL, 0) == sink.pid);
	fclose(sink.out);
	CHECK(waitpid(sender.pid, &status, 0) == sender.pid);
	fclose(sender.out);
	CHECK(crashed(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 1));
}

/*
 * The server of a sender goes, and another takes its place: the sender goes on, unless its driver
 * crashed.
 */
static void memif_successor(void)
{
	char to[512], from[512];
	struct child sink = START("sink", "--port", "dpdk:net_memif0", "--eal", eal(to, SERVER)),
		     sender;
	double received = 0;
	int status;
	char *r;

	sender = START("send", "--port", "dpdk:net_memif0", "--eal", eal(from, CLIENT), "--rate",
		       "1kpps", "--catch-up", "1ms", "--peer-timeout", "50s");
	usleep(50000);
	kill(sink.pid, SIGTERM);
	free(child_result(&sink, 0));
	sink = START("sink", "--port", "dpdk:net_memif0", "--eal", to, "--interval", "20ms");
	while (received == 0 && waitpid(sender.pid, &status, WNOHANG) == 0) {
		r = child_line(&sink);
		CHECK(r != NULL);
		received = json_number(r, "received");
		free(r);
	}
	kill(sink.pid, SIGTERM);
	free(child_result(&sink, 0));
	if (received == 0) {
		CHECK(crashed(status));
		fclose(sender.out);
		return;
	}
	kill(sender.pid, SIGTERM);
	CHECK(waitpid(sender.pid, &status, 0) == sender.pid);
	CHECK(crashed(status) || WEXITSTATUS(status) == 0);
	fclose(sender.out);
}

static void become_testpmd(pid_t parent)
{
	char a[96], b[96], lcores[32];
	int log, none = open("/dev/null", O_RDONLY | O_CLOEXEC);

	snprintf(a, sizeof(a), "%s/testpmd.txt", directory);
	log = open(a, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	snprintf(a, sizeof(a), "net_vhost0,iface=%s/a.sock,client=1", directory);
	snprintf(b, sizeof(b), "net_vhost1,iface=%s/b.sock,client=1", directory);
	snprintf(lcores, sizeof(lcores), "0@%d,1@%d", first_cpu(), first_cpu());
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(60);
	if (getppid() == parent && dup2(none, 0) >= 0 && dup2(log, 1) >= 0 && dup2(log, 2) >= 0)
		execlp("dpdk-testpmd", "dpdk-testpmd", "--no-huge", "--no-shconf", "--no-pci",
		       "--no-telemetry", "-m", "96", "--lcores", lcores, "--vdev", a, "--vdev", b,
		       "--", "--forward-mode=io", "--auto-start", "--total-num-mbufs=4096",
		       "--stats-period=600", (char *)NULL);
	_exit(126);
}

/*
 * A switch in a process of its own, which calls:
 *
 *   draygen: virtio-user a ===vhost-user=== testpmd ===vhost-user=== virtio-user b: draygen
 */
static void through_a_switch(void)
{
	char text[512];
	pid_t parent = getpid();
	struct child c;
	char *r;

	if (system("command -v dpdk-testpmd >/dev/null") != 0)
		test_skip("all but the switch passes, which is dpdk-testpmd (Debian: dpdk-dev)");
	testpmd = fork();
	CHECK(testpmd >= 0);
	if (testpmd == 0)
		become_testpmd(parent);
	c = START("loop", "--port", "dpdk:net_virtio_user0", "--to-port", "dpdk:net_virtio_user1",
		  "--eal",
		  eal(text,
		      "--single-file-segments --vdev "
		      "net_virtio_user0,path=%s/a.sock,server=1,queues=1,mac=02:00:00:00:00:0a "
		      "--vdev "
		      "net_virtio_user1,path=%s/b.sock,server=1,queues=1,mac=02:00:00:00:00:0b"),
		  "--both", "--packets", "1000", "--warmup", "200", "--rate", "2kpps", "--catch-up",
		  "60s", "--timeout", "5s", "--peer-timeout", "40s", "--beside", "1");
	r = child_result(&c, 0);
	for (unsigned i = 0; i < 2; i++) {
		const char *way = strstr(r, i ? "\"backward\"" : "\"forward\"");

		CHECK_EQ(json_number(way, "sender.sent"), 1000);
		CHECK(json_number(way, "sink.received") >
		      500); /* the switch drops what this thread is late for */
		CHECK_EQ(json_number(way, "sink.received") + json_number(way, "sink.lost"), 1000);
		CHECK_EQ(json_number(way, "sink.corrupt") + json_number(way, "sink.foreign") +
				 json_number(way, "sink.other_stream"),
			 0);
	}
	CHECK(json_true(r, "oversubscribed"));
	free(r);
	kill(testpmd, SIGKILL);
	CHECK(waitpid(testpmd, NULL, 0) == testpmd);
	testpmd = 0;
}

/* The exit status of what does not become ready. */
static int fails(const char *program, const char *port, const char *arguments)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		alarm(60);
		CHECK(freopen("/dev/null", "w", stderr) && freopen("/dev/null", "w", stdout));
		execl(program, program, "send", "--port", port, "--peer-timeout", "200ms", "--eal",
		      arguments, (char *)NULL);
		_exit(126);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void failures(const char *program)
{
	char text[512];

	CHECK_EQ(fails(program, "null", EAL), 2);
	CHECK_EQ(fails(program, "dpdk:net_null1", EAL "--vdev net_null0"), 1);
	CHECK_EQ(fails(program, "dpdk:net_null0", EAL "--vdev net_none0"), 1);
	CHECK_EQ(fails(program, "dpdk:net_null0", "--no-such-argument"), 1);
	/*
	 * Nobody comes: twice, since what the first leaves behind must not be in the way of the
	 * second.
	 */
	for (unsigned i = 0; i < 2; i++) {
		CHECK_EQ(fails(program, "dpdk:net_memif0", eal(text, SERVER)), 1);
		CHECK_EQ(fails(program, "dpdk:net_virtio_user0",
			       eal(text, "--single-file-segments --vdev "
					 "net_virtio_user0,path=%s/v.sock,server=1,queues=1")),
			 1);
	}
	CHECK_EQ(fails(program, "dpdk:net_memif0", eal(text, CLIENT)), 1);
}

int main(int argc, char **argv)
{
	test_program(argc, argv);
	CHECK(mkdtemp(directory) != NULL);
	test_clean_up = clean_up;
	setenv("RUNTIME_DIRECTORY", directory, 1);
	drop_capabilities();
	null();
	ring("imix", "198.51.100.2:5010", "198.51.100.1", NULL);
	ring("80", "[fd00::2]:5010", "fd00::1", NULL);
	ring("104", "198.51.100.2:5010", "10.60.0.1",
	     "gtpu:teid=1,from=198.18.0.2,to=198.18.0.1,pdu=up,qfi=9");
	memif(SERVER, CLIENT);
	memif(CLIENT, SERVER);
	memif_loop();
	memif_peer_dies();
	memif_successor();
	failures(argv[1]);
	through_a_switch();
	clean_up();
	return 0;
}
