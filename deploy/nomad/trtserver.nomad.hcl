# A job for Nomad: nomad job run -var image=... trtserver.nomad.hcl
variable "image" {
  type    = string
  default = "registry.example.org/trtserver:0.2.0-onnxruntime"
}

job "trtserver" {
  type        = "service"
  datacenters = ["*"]

  group "server" {
    count = 2

    # One at a time, and only after the new one is ready.
    update {
      max_parallel     = 1
      canary           = 1
      auto_promote     = true
      auto_revert      = true
      health_check     = "checks"
      min_healthy_time = "5s"
      healthy_deadline = "10m"
    }

    network {
      port "http" { to = 8000 }
      port "grpc" { to = 8001 }
      port "metrics" { to = 8002 }
    }

    # A host volume of the clients; or a CSI volume.
    volume "models" {
      type      = "host"
      source    = "models"
      read_only = true
    }

    service {
      name     = "trtserver"
      port     = "http"
      provider = "nomad"

      check {
        name     = "ready"
        type     = "http"
        path     = "/v2/health/ready"
        interval = "2s"
        timeout  = "1s"
      }
    }

    service {
      name     = "trtserver-grpc"
      port     = "grpc"
      provider = "nomad"
      tags     = ["h2c"]
    }

    service {
      name     = "trtserver-metrics"
      port     = "metrics"
      provider = "nomad"
    }

    task "server" {
      driver = "docker"
      user   = "1000"
      # --drain-delay-secs + --exit-timeout-secs, and time to unload the models. The client needs
      # max_kill_timeout = "60s" or more.
      kill_signal  = "SIGTERM"
      kill_timeout = "60s"

      config {
        image           = var.image
        args            = ["tritonserver", "--model-repository=/models", "--drain-delay-secs=20", "--exit-timeout-secs=30"]
        ports           = ["http", "grpc", "metrics"]
        readonly_rootfs = true
        cap_drop        = ["all"]
        security_opt    = ["no-new-privileges"]
        shm_size        = 268435456

        mount {
          type   = "tmpfs"
          target = "/tmp"
        }
      }

      volume_mount {
        volume      = "models"
        destination = "/models"
        read_only   = true
      }

      resources {
        cpu    = 2000
        memory = 2048
      }
    }
  }
}
