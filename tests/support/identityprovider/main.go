// Dex, an OpenID provider, on loopback for tests: all in memory, without a database, and with the people of a file.
//
//	identityprovider ADDRESS FILE
//
// The file is JSON: the issuer, the clients, and the people; each person is a connector of their own (`connector_id`),
// who logs in without being asked anything. "passwords" are people of Dex's own form.
package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/dexidp/dex/connector"
	"github.com/dexidp/dex/connector/mock"
	"github.com/dexidp/dex/pkg/log"
	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
)

type config struct {
	Issuer    string
	Valid     string    // how long an ID token is good for
	Now       time.Time // what its clock shows at the start
	Clients   []storage.Client
	People    map[string]connector.Identity
	Passwords []storage.Password
}

type person struct{ connector.Identity }

func (p *person) Open(_ string, logger log.Logger) (connector.Connector, error) {
	return &mock.Callback{Identity: p.Identity, Logger: logger}, nil
}

func must[T any](found T, err error) T {
	if err != nil {
		panic(err)
	}
	return found
}

func main() {
	var given config
	if err := json.Unmarshal(must(os.ReadFile(os.Args[2])), &given); err != nil {
		panic(err)
	}
	ahead := time.Until(given.Now)
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	kept := storage.WithStaticClients(memory.New(logger), given.Clients)
	var connectors []storage.Connector
	for id, identity := range given.People {
		found := person{identity}
		server.ConnectorsConfig[id] = func() server.ConnectorConfig { return &found }
		connectors = append(connectors, storage.Connector{ID: id, Type: id, Name: identity.Username})
	}
	if len(given.Passwords) > 0 {
		kept = storage.WithStaticPasswords(kept, given.Passwords, logger)
		connectors = append(connectors, storage.Connector{ID: server.LocalConnector, Type: server.LocalConnector, Name: "Email"})
	}
	served := must(server.NewServer(context.Background(), server.Config{
		Issuer:                 given.Issuer,
		Storage:                storage.WithStaticConnectors(kept, connectors),
		SupportedResponseTypes: []string{"code"},
		SkipApprovalScreen:     true,
		IDTokensValidFor:       must(time.ParseDuration(given.Valid)),
		RefreshTokenPolicy:     must(server.NewRefreshTokenPolicy(logger, false, "", "", "")),
		Logger:                 logger,
		Now:                    func() time.Time { return time.Now().Add(ahead).UTC() },
		PrometheusRegistry:     prometheus.NewRegistry(),
	}))
	panic(http.ListenAndServe(os.Args[1], served))
}
